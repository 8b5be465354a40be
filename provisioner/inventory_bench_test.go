package provisioner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/provisioner"
)

// BenchmarkInventory compares an inventory of 400 tables with the listing alone, as the information schema gives it.
func BenchmarkInventory(b *testing.B) {
	s := provisioned(b, provisioner.Config{})
	for ago := range 400 {
		s.addDay(ago, 1)
		s.addMessage(ago, 1, false)
	}
	b.Run("listing alone", func(b *testing.B) {
		for b.Loop() {
			require.Len(b, s.column("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA=? AND TABLE_TYPE='BASE TABLE' AND TABLE_NAME LIKE 'raw-%'", s.name), 400)
		}
	})
	b.Run("inventory", func(b *testing.B) {
		for b.Loop() {
			require.Len(b, s.inventory().Tables, 400)
		}
	})
}
