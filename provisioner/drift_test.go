package provisioner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// Dangling pointers are looked for in ranges of names, which not every layout has.
func TestDanglingPointersAreFoundInEveryLayout(t *testing.T) {
	for _, layout := range []string{"2006-01-02", "02.01.2006", "2006.002", "Monday, 02-January-2006"} {
		t.Run(layout, func(t *testing.T) {
			schema := provisioner.PostalSchema()
			schema.RawLayout = layout
			s := provisioned(t, provisioner.Config{Schema: schema})
			name := func(ago int) string { return "raw-" + s.today.AddDate(0, 0, -ago).Format(layout) }
			there := []int{1, 3, 10, 12, 100, 402}
			for _, ago := range there {
				s.addTable(name(ago))
				s.book(name(ago), 0)
			}
			gone := map[string]bool{}
			for ago := range 410 {
				s.exec("INSERT INTO "+s.Ident("messages")+" (timestamp, raw_table) VALUES (1, ?), (1, ?)", name(ago), strings.ToUpper(name(ago))+" ")
				if !slices.Contains(there, ago) && ago > 2 && ago <= 402 {
					gone[name(ago)] = true
				}
			}
			found := map[string]bool{}
			for _, d := range s.inventory().Drift {
				require.Equal(t, retention.DriftDangling, d.Kind, d.Table)
				found[d.Table] = true
			}
			require.Equal(t, gone, found)
		})
	}
}
