package main

import (
	"context"
	"database/sql"
)

// What is read from Postal's main database (github.com/postalserver/postal, db/schema.rb). Nothing there is written.
const (
	// A server whose organization is deleted goes with it.
	selectServers = "SELECT s.id, COALESCE(o.permalink, ''), COALESCE(s.permalink, ''), s.raw_message_retention_days," +
		" s.raw_message_retention_size, s.message_retention_days, s.deleted_at IS NOT NULL OR o.deleted_at IS NOT NULL" +
		" FROM servers s LEFT JOIN organizations o ON o.id = s.organization_id ORDER BY s.id"
	selectPending = "SELECT message_id FROM queued_messages WHERE server_id = ? AND message_id IS NOT NULL"
)

// What check asks the servers.
const (
	selectServer  = "SELECT VERSION(), CAST(UTC_TIMESTAMP(6) AS CHAR), @@SESSION.sql_mode, CAST(@@GLOBAL.read_only AS CHAR)"
	selectAccount = "SELECT CURRENT_USER()"
	showGrants    = "SHOW GRANTS"
	showReplica   = "SHOW REPLICA STATUS" // MariaDB from 10.5 on, MySQL from 8.0.22 on

	// Postal 3 runs a task when next_run_after has passed (app/lib/worker/process.rb).
	selectPostalTask = "SELECT CAST(next_run_after AS CHAR), next_run_after < UTC_TIMESTAMP() + INTERVAL 1 YEAR" +
		" FROM scheduled_tasks WHERE name = 'ProcessMessageRetentionScheduledTask'"
)

// createDatabase makes the database of the leases; name is quoted.
func createDatabase(name string) string { return "CREATE DATABASE IF NOT EXISTS " + name }

// query returns what scan makes of each row.
func query[T any](ctx context.Context, db *sql.DB, scan func(*sql.Rows) (T, error), statement string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
