package main

const (
	sqlClaimed = "SELECT (SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?)," +
		" (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = 'made_by_quickstart')"
	sqlCreateDatabase = "CREATE DATABASE `" + database + "` CHARACTER SET utf8mb4"
	sqlCreateMarker   = "CREATE TABLE `" + database + "`.made_by_quickstart (id INT PRIMARY KEY)"
	sqlCreateQueue    = "CREATE TABLE queued_messages (id INT AUTO_INCREMENT PRIMARY KEY, message_id INT NOT NULL)"
	sqlServerTime     = "SELECT CAST(UNIX_TIMESTAMP() AS SIGNED)"

	sqlCreateDay     = "CREATE TABLE IF NOT EXISTS %s (%s) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
	sqlInsertRaw     = "INSERT INTO %s (data, next) VALUES (?, NULL)"
	sqlInsertMessage = "INSERT INTO messages (scope, status, rcpt_to, mail_from, subject, message_id, timestamp, bounce," +
		" raw_table, raw_headers_id, raw_body_id, size) VALUES ('incoming', 'Sent', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	sqlInsertDelivery = "INSERT INTO deliveries (message_id, status, timestamp) VALUES (?, 'Sent', ?)"

	sqlPlantOrphan   = "INSERT INTO raw_message_sizes (table_name, size) VALUES (?, ?)"
	sqlForgetBooking = "DELETE FROM raw_message_sizes WHERE table_name = ?"
	sqlMessageOfDay  = "SELECT id FROM messages WHERE raw_table = ? ORDER BY id LIMIT 1"
	sqlQueue         = "INSERT INTO queued_messages (message_id) VALUES (?)"
	sqlPending       = "SELECT message_id FROM queued_messages"

	sqlTables       = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '" + database + "' AND TABLE_NAME LIKE 'raw-%' ORDER BY TABLE_NAME"
	sqlReferenced   = "SELECT DISTINCT raw_table FROM messages WHERE raw_table IS NOT NULL"
	sqlQueuedMail   = "SELECT raw_table, raw_headers_id, raw_body_id FROM messages WHERE id = ?"
	sqlRawData      = "SELECT data FROM %s WHERE id = ?"
	sqlBooks        = "SELECT table_name, COUNT(*), SUM(size) FROM raw_message_sizes GROUP BY table_name ORDER BY table_name"
	sqlMessageBytes = "SELECT COALESCE(SUM(size), 0) FROM messages WHERE raw_table = ?"
	sqlTooOld       = "SELECT COUNT(*) FROM messages WHERE timestamp < ?"
	sqlLostChildren = "SELECT COUNT(*) FROM deliveries WHERE message_id NOT IN (SELECT id FROM messages)"
)
