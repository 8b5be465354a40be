package retentiontest_test

import (
	"testing"

	"github.com/mailretention/mailretention/retention"
	"github.com/mailretention/mailretention/retention/retentiontest"
)

func TestInMemoryStore(t *testing.T) {
	retentiontest.TestStore(t, func(_ *testing.T, f retentiontest.Fixture) retention.Store {
		return retentiontest.NewStore(f)
	})
}

func TestInMemoryLocker(t *testing.T) {
	retentiontest.TestLocker(t, func(*testing.T) retention.Locker { return retentiontest.NewLocker() })
}
