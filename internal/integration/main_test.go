// Package integration holds the tests that need several packages and a server at once.
package integration

import (
	"testing"

	"github.com/mailretention/mailretention/internal/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }
