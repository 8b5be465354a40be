package provisioner_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

func TestCrashInDropTable(t *testing.T) {
	q := &queue{}
	crashAtEachStatement(t, provisioner.Config{Pending: q.Pending},
		func(s *store) {
			s.exec("DELETE FROM messages")
			if len(s.tables()) == 0 {
				s.addTable(s.day(9))
				s.book(s.day(9), 1)
			}
			s.addMessage(9, 1, false)
			s.addMessage(0, 1, false)
		},
		func(s *store, p *provisioner.Provisioner) error { return p.DropTable(t.Context(), s.day(9), nil) },
		func(s *store) {
			if s.pointingAt(9) > 0 {
				require.Len(t, s.tables(), 1, "pointers go before the table")
			}
			if len(s.tables()) > 0 {
				require.Len(t, s.books(), 1, "the table goes before its row")
			}
			require.Equal(t, 1, s.pointingAt(0))
		},
		func(s *store) {
			require.Empty(t, s.tables())
			require.Empty(t, s.books())
			require.Zero(t, s.pointingAt(9))
		})
}

func TestCrashInPruneMessages(t *testing.T) {
	var stay []int64
	crashAtEachStatement(t, provisioner.Config{},
		func(s *store) {
			for _, table := range append([]provisioner.ChildTable{{Name: "messages"}}, provisioner.PostalSchema().Children...) {
				s.exec("DELETE FROM " + s.Ident(table.Name))
			}
			first := s.addMessages(5, 4)
			stay = []int64{first + 1, s.addMessages(0, 1)}
			s.exec(fmt.Sprint("UPDATE messages SET held=1 WHERE id=", stay[0]))
			s.addMessages(7, 1) // found by the probe
			for _, id := range []int64{first, stay[0], stay[1], stay[1] + 1} {
				s.addChildren(id)
			}
		},
		func(s *store, p *provisioner.Provisioner) error {
			return p.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil)
		},
		func(s *store) {
			ids := s.ids("SELECT id FROM messages ORDER BY id")
			require.Subset(t, ids, stay)
			for _, child := range provisioner.PostalSchema().Children {
				children := s.ids("SELECT message_id FROM " + s.Ident(child.Name))
				require.Subset(t, ids, children, "children go with their message")
				require.Subset(t, children, stay)
			}
		},
		func(s *store) { s.requireMessages(stay) })
}
