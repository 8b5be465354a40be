package main

// Names without a database mean that of the pool. A raw table, %s, is qualified by Provisioner.Ident.
const (
	// queueColumns is the queue: one row for each recipient whose mail is still to be delivered.
	queueColumns = `
  id int NOT NULL AUTO_INCREMENT,
  message_id int NOT NULL,
  attempts int NOT NULL DEFAULT 0,
  retry_at datetime(6) NOT NULL,
  PRIMARY KEY (id),
  KEY on_message_id (message_id),
  KEY on_retry_at (retry_at)`

	sqlInsertRaw     = "INSERT INTO %s (data) VALUES (?)"
	sqlInsertMessage = "INSERT INTO messages (scope, status, rcpt_to, mail_from, subject, message_id, timestamp," +
		" raw_table, raw_headers_id, raw_body_id, size) VALUES ('incoming', 'Pending', ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	sqlEnqueue = "INSERT INTO queue (message_id, retry_at) VALUES (?, UTC_TIMESTAMP(6))"
	sqlPending = "SELECT message_id FROM queue"

	// sqlClaim locks an entry until the transaction ends. An entry that another instance has locked is passed over.
	sqlClaim = "SELECT id, message_id, attempts FROM queue WHERE retry_at <= UTC_TIMESTAMP(6)" +
		" ORDER BY retry_at, id LIMIT 1 FOR UPDATE SKIP LOCKED"
	sqlMessage = "SELECT mail_from, rcpt_to, raw_table, raw_headers_id, raw_body_id FROM messages WHERE id = ?"
	sqlRaw     = "SELECT data FROM %s WHERE id = ?"

	sqlDelivery = "INSERT INTO deliveries (message_id, status, details, timestamp) VALUES (?, ?, ?, UNIX_TIMESTAMP())"
	sqlStatus   = "UPDATE messages SET status = ?, held = ? WHERE id = ?"
	sqlDequeue  = "DELETE FROM queue WHERE id = ?"
	sqlPostpone = "UPDATE queue SET attempts = attempts + 1, retry_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND WHERE id = ?"
)
