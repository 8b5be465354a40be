package benchmark

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What Postal 3.3.6 does, statement for statement, each in a transaction of its own.
const (
	naiveList     = "SHOW TABLES LIKE 'raw-%'"
	naiveForget   = "DELETE FROM raw_message_sizes WHERE table_name=?"
	naiveDetach   = "UPDATE messages SET raw_table=NULL, raw_headers_id=NULL, raw_body_id=NULL, size=NULL WHERE raw_table=?"
	naiveNewestID = "SELECT id FROM messages WHERE timestamp<=? ORDER BY id DESC LIMIT 1"
)

func naiveDrop(table string) string { return "DROP TABLE `" + table + "`" }

func naiveDelete() []string {
	return []string{
		"DELETE FROM clicks WHERE message_id<=?", "DELETE FROM loads WHERE message_id<=?", "DELETE FROM deliveries WHERE message_id<=?",
		"DELETE FROM spam_checks WHERE message_id<=?", "DELETE FROM messages WHERE id<=?",
	}
}

// naiveRaw removes the raw tables of the days that go.
func naiveRaw(ctx context.Context, m *mailbox) (rows int64, err error) {
	tables, err := column[string](ctx, m.db, naiveList)
	if err != nil {
		return 0, err
	}
	for _, table := range slices.Sorted(slices.Values(tables)) {
		if table >= m.table(m.keeps) {
			break
		}
		result, err := m.db.ExecContext(ctx, naiveDetach, table)
		if err != nil {
			return rows, err
		}
		detached, err := result.RowsAffected()
		if err != nil {
			return rows, err
		}
		rows += detached
		if _, err := m.db.ExecContext(ctx, naiveForget, table); err != nil {
			return rows, err
		}
		if _, err := m.db.ExecContext(ctx, naiveDrop(table)); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// naiveMessages removes the messages of the same days, and all with lower ids. It leaves their links.
func naiveMessages(ctx context.Context, m *mailbox) (rows int64, err error) {
	var newest int64
	err = m.db.QueryRowContext(ctx, naiveNewestID, lastMoment(m.midnight(m.keeps))).Scan(&newest)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, statement := range naiveDelete() {
		result, err := m.db.ExecContext(ctx, statement, newest)
		if err != nil {
			return rows, err
		}
		if rows, err = result.RowsAffected(); err != nil { // the last are the messages
			return rows, err
		}
	}
	return rows, nil
}

func naiveBoth(ctx context.Context, m *mailbox) (int64, error) {
	detached, err := naiveRaw(ctx, m)
	if err != nil {
		return detached, err
	}
	deleted, err := naiveMessages(ctx, m)
	return detached + deleted, err
}

// lastMoment is the time before a midnight, in seconds.
func lastMoment(midnight time.Time) float64 { return float64(midnight.UnixMicro()-1) / 1e6 }

// What is measured against each other leaves the same behind.
func TestOursAndNaiveDoTheSame(t *testing.T) {
	for name, jobs := range map[string][2]job{
		"raw tables": {our(rawTables), naiveRaw}, "messages": {our(messageRows), naiveMessages}, "both": {our(both), naiveBoth},
	} {
		t.Run(name, func(t *testing.T) {
			var left [2][]string
			var rows [2]int64
			for i, do := range jobs {
				m := sharedServer(t).newMailbox(t, sixDays(900))
				var err error
				rows[i], err = do(t.Context(), m)
				require.NoError(t, err)
				left[i], err = column[string](t.Context(), m.db, selectLeft)
				require.NoError(t, err)
				tables, err := column[string](t.Context(), m.db, naiveList)
				require.NoError(t, err)
				left[i] = append(left[i], tables...)
			}
			require.Equal(t, left[1], left[0])
			require.Equal(t, rows[1], rows[0])
			require.Positive(t, rows[0])
		})
	}
}
