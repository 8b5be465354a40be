package provisioner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/provisioner"
)

// Where the probe finds nothing there is no walk, but children below the first message are still without one.
func TestPruneChildrenBelowTheFirstMessage(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.execf("INSERT INTO %s (id, timestamp) VALUES (50, %d)", s.Ident("messages"), s.today.Unix())
	for _, id := range []int64{1, 49, 50, 51} {
		s.addChildren(id)
	}
	require.NoError(t, s.prune())
	for _, child := range provisioner.PostalSchema().Children {
		require.Equal(t, []int64{50, 51}, s.ids("SELECT message_id FROM "+s.Ident(child.Name)+" ORDER BY message_id"), child.Name)
	}
}

// A message that the probe doesn't see goes when the walk passes it, which it does when the probe sees another.
func TestPruneWhatTheProbeDoesNotSee(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	unseen := s.addMessage(9, 1, false)
	s.execf("UPDATE %s SET scope='other' WHERE id=%d", s.Ident("messages"), unseen)
	young := s.addMessage(0, 1, false)
	messages := "SELECT id FROM " + s.Ident("messages") + " ORDER BY id"
	require.NoError(t, s.prune())
	require.Equal(t, []int64{unseen, young}, s.ids(messages))
	s.addMessage(9, 1, false)
	require.NoError(t, s.prune())
	require.Equal(t, []int64{young}, s.ids(messages))
}
