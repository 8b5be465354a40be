package provisioner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/provisioner"
)

// crashAtEachStatement runs an operation once for each of its statements and each way in which a statement can be lost, prepare first.
// At once is checked what must hold even then, and healed after the operation has run again.
func crashAtEachStatement(t *testing.T, cfg provisioner.Config, prepare func(*store), run func(*store, *provisioner.Provisioner) error, atOnce, healed func(*store)) {
	t.Helper()
	s := provisioned(t, cfg)
	p, faults := s.faulty(cfg)
	prepare(s)
	require.NoError(t, run(s, p))
	healed(s)
	faults.Reset()
	prepare(s)
	require.NoError(t, run(s, p))
	statements := faults.Count()
	for at := 1; at <= statements; at++ {
		for _, kind := range []faultsql.Kind{faultsql.FailBefore, faultsql.LoseAnswer, faultsql.Dead} {
			prepare(s)
			faults.Reset()
			faults.Arm(faultsql.Fault{At: at, Kind: kind})
			_ = run(s, p) // one whose last statement only sets the session back succeeds all the same
			require.Zero(t, faults.Armed())
			atOnce(s)
			faults.Heal()
			require.NoError(t, run(s, p), faults.Log()[at-1])
			healed(s)
		}
	}
	t.Logf("%d crash points", 3*statements)
}

func TestCrashInProvision(t *testing.T) {
	cfg := provisioner.Config{Schema: otherSchema()}
	crashAtEachStatement(t, cfg,
		func(s *store) { s.exec("DROP TABLE mails, mail_volumes, events") },
		func(s *store, p *provisioner.Provisioner) error { return p.Provision(t.Context()) },
		func(*store) {},
		func(s *store) {
			require.ElementsMatch(t, []string{"events", "mail_volumes", "mails"},
				s.column("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA=?", s.name))
		})
}

func TestCrashInInsertInto(t *testing.T) {
	bothBooks(t, func(t *testing.T, existing *store) {
		crashAtEachStatement(t, provisioner.Config{},
			func(s *store) {
				s.exec("DROP TABLE IF EXISTS " + s.Ident(s.day(0)))
				s.exec("DROP TABLE raw_message_sizes")
				s.exec("CREATE TABLE raw_message_sizes LIKE " + existing.Ident("raw_message_sizes"))
				s.book(s.day(0), fiveGB)
			},
			func(s *store, p *provisioner.Provisioner) error {
				through := &store{Provisioner: p, t: t, db: s.db, name: s.name}
				return through.insert(t.Context(), s.today, 10)
			},
			func(s *store) { require.LessOrEqual(t, len(s.books()), 1) },
			func(s *store) {
				require.Equal(t, []string{s.day(0)}, s.tables())
				require.Len(t, s.books(), 1)
				require.NotContains(t, s.books(), s.day(0)+" 5000000000")
			})
	})
}

func TestCrashInReconcile(t *testing.T) {
	dangling := func(s *store, ago int) string {
		return s.column("SELECT COUNT(*) FROM messages WHERE raw_table=?", s.day(ago))[0]
	}
	crashAtEachStatement(t, provisioner.Config{},
		func(s *store) {
			s.exec("DROP TABLE raw_message_sizes")
			s.exec("CREATE TABLE raw_message_sizes (id int AUTO_INCREMENT PRIMARY KEY, table_name varchar(255), size bigint, KEY (table_name(14)))")
			s.exec("DELETE FROM messages")
			if len(s.tables()) == 0 {
				s.addTable(s.day(5))
				s.addTable(s.day(6))
			}
			s.addMessage(5, 50, false)
			s.addMessage(6, 66, false)
			s.book(s.day(6), 60)
			s.book(s.day(6), 61)
			s.book(s.day(7), 70)
			s.addMessage(7, 1, false)
			s.addMessage(8, 1, true)
		},
		func(s *store, p *provisioner.Provisioner) error {
			_, err := p.Reconcile(t.Context())
			return err
		},
		func(s *store) {
			require.Equal(t, []string{"1", "1"}, []string{dangling(s, 5), dangling(s, 6)}, "pointers at tables stay")
			if dangling(s, 7) == "1" {
				require.Contains(t, s.books(), s.day(7)+" 70", "pointers go before the row")
			}
		},
		func(s *store) {
			require.ElementsMatch(t, []string{s.day(5) + " 50", s.day(6) + " 66"}, s.books())
			require.Equal(t, []string{"0", "0"}, []string{dangling(s, 7), dangling(s, 8)})
			require.Empty(t, s.inventory().Drift)
		})
}
