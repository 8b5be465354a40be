package main

import (
	"context"
	"database/sql"
	"errors"
)

// sqlCountYesterday writes the number of yesterday's messages into Postal's table of daily statistics, once more with
// the same result if it is run again. Yesterday is the server's, in UTC; the conditions on scope and spam are what an
// index of messages begins with.
const sqlCountYesterday = "INSERT INTO stats_daily (time, incoming, outgoing)" +
	" SELECT day, (SELECT COUNT(*) FROM messages WHERE scope = 'incoming' AND spam IN (0, 1) AND timestamp >= day AND timestamp < day + 86400)," +
	" (SELECT COUNT(*) FROM messages WHERE scope = 'outgoing' AND spam IN (0, 1) AND timestamp >= day AND timestamp < day + 86400)" +
	" FROM (SELECT UNIX_TIMESTAMP() DIV 86400 * 86400 - 86400 AS day) AS yesterday" +
	" ON DUPLICATE KEY UPDATE incoming = VALUES(incoming), outgoing = VALUES(outgoing)"

// countYesterday is the task that isn't retention. The guard is its transaction's last statement: a replica that has
// lost its lease, and doesn't know it yet, can't commit.
func countYesterday(ctx context.Context, db *sql.DB, guard func(context.Context, *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, sqlCountYesterday)
	if err == nil {
		err = guard(ctx, tx)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
