package lease_test

import (
	"testing"

	"github.com/mailretention/mailretention/internal/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }
