package benchmark

import (
	"fmt"
	"strings"

	"github.com/mailretention/mailretention/provisioner"
)

// Every statement of the benchmarks but the naive ones.

const (
	selectBacklog = "SELECT (SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME='trx_rseg_history_len')," +
		" (SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME='buffer_pool_pages_dirty')"
	selectAsBefore = "SELECT CONCAT('SET GLOBAL innodb_flush_log_at_trx_commit=', @@GLOBAL.innodb_flush_log_at_trx_commit," +
		" ', GLOBAL innodb_max_dirty_pages_pct=', @@GLOBAL.innodb_max_dirty_pages_pct, ', GLOBAL innodb_io_capacity=', @@GLOBAL.innodb_io_capacity," +
		" ', GLOBAL innodb_io_capacity_max=', @@GLOBAL.innodb_io_capacity_max)" // the statement that ends hurry
	hurry = "SET GLOBAL innodb_io_capacity_max=20000, GLOBAL innodb_io_capacity=20000, GLOBAL innodb_max_dirty_pages_pct=0, GLOBAL innodb_flush_log_at_trx_commit=0"

	selectToday = "SELECT CAST(UNIX_TIMESTAMP() DIV 86400 * 86400 AS SIGNED)"

	createQueue = "CREATE TABLE queued_messages (id int NOT NULL AUTO_INCREMENT PRIMARY KEY, server_id int, message_id int, KEY on_server_id (server_id))"

	selectLeft = "SELECT CONCAT_WS(' ', 'message', id, COALESCE(raw_table, 'no mail'), COALESCE(size, 'no size')) FROM messages" +
		" UNION ALL SELECT CONCAT_WS(' ', 'delivery of', message_id) FROM deliveries UNION ALL SELECT CONCAT_WS(' ', 'load of', message_id) FROM loads" +
		" UNION ALL SELECT CONCAT_WS(' ', table_name, size) FROM raw_message_sizes ORDER BY 1"
	listTables = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA=? AND TABLE_TYPE='BASE TABLE' AND TABLE_NAME LIKE 'raw-%'"
	bareRead   = "DO 1"
	bareWrite  = "UPDATE queued_messages SET server_id=server_id+1 WHERE id=1"

	book    = "INSERT INTO raw_message_sizes (table_name, size) VALUES (?, ?)"
	analyze = "ANALYZE TABLE messages, deliveries, clicks, loads, links, spam_checks"

	insertMessage = "INSERT INTO messages (token, scope, rcpt_to, mail_from, subject, message_id, timestamp, status, held, size, raw_table, raw_headers_id, raw_body_id, spam, domain_id)" +
		" VALUES (LEFT(SHA2(RAND(),256),16), 'outgoing', CONCAT(LEFT(SHA2(RAND(),256),8),'@example.com'), 'news@example.org', 'Hello', CONCAT(LEFT(SHA2(RAND(),256),32),'@rp.example.org'), UNIX_TIMESTAMP(NOW(6)), 'Pending', 0, 1000, ?, 1, 2, 0, 1)"
	trackOpen = "UPDATE messages SET loaded=UNIX_TIMESTAMP(NOW(6)) WHERE id=?"
)

func createDatabase(name string) string {
	return "CREATE DATABASE `" + name + "` CHARACTER SET utf8mb4"
}

func dropDatabase(name string) string { return "DROP DATABASE IF EXISTS `" + name + "`" }

func use(database string) string { return "USE `" + database + "`" }

func createRaw(table string) string {
	return "CREATE TABLE `" + table + "` (" + provisioner.PostalSchema().RawColumns + ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
}

// numbers is a table of the numbers n from 0 to count-1, in order, on either server.
func numbers(count int) string {
	digit := "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4" +
		" UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) AS d"
	sum, from := "0", []string{}
	for place := 1; place < count || len(from) == 0; place *= 10 {
		i := len(from)
		sum += fmt.Sprintf("+%d*d%d.d", place, i)
		from = append(from, digit+fmt.Sprint(i))
	}
	return fmt.Sprintf("(SELECT %s AS n FROM %s HAVING n<%d ORDER BY n) AS numbers", sum, strings.Join(from, ", "), count)
}

// fillMessages adds messages with the ids from after+1 on, evenly spread over a day. What is random in an operator's is so here:
// the order of the indexes on it is what makes deleting expensive. Its arguments: the day's midnight, its raw table, bytes of each mail.
func fillMessages(after, count int, lean bool) string {
	random := func(salt, length int) string {
		return fmt.Sprintf("LEFT(SHA2(CONCAT(%d,'-',%d+n),256),%d)", salt, after, length)
	}
	token, recipient, id := random(1, 16), "CONCAT("+random(2, 8)+",'@example.com')", "CONCAT("+random(3, 32)+",'@rp.example.org')"
	if lean {
		token, recipient, id = "NULL", "'someone@example.com'", "NULL"
	}
	return fmt.Sprintf("INSERT INTO messages (id, token, scope, rcpt_to, mail_from, subject, message_id, timestamp, domain_id, credential_id, status, held,"+
		" last_delivery_attempt, raw_table, size, raw_headers_id, raw_body_id, spam)"+
		" SELECT %[1]d+n+1, %[3]s, IF(n%%10=0,'incoming','outgoing'), %[4]s, CONCAT('news',n%%20,'@example.org'), CONCAT('Your letter no. ',n), %[5]s,"+
		" day+86400.0*n/%[2]d, n%%50, n%%20, IF(n%%30=0,'Bounced','Sent'), 0, day+86400.0*n/%[2]d, raw, bytes, 2*n+1, 2*n+2, 0"+
		" FROM %[6]s, (SELECT ? AS day, ? AS raw, ? AS bytes) AS args", after, count, token, recipient, id, numbers(count))
}

// fillRaw adds two rows for each message: headers and body. Its argument: bytes of the two.
func fillRaw(table string, count int) string {
	return fmt.Sprintf("INSERT INTO `%s` (data) SELECT REPEAT('x', IF(half=0, bytes DIV 4, bytes-bytes DIV 4)) FROM %s,"+
		" (SELECT 0 AS half UNION ALL SELECT 1) AS halves, (SELECT ? AS bytes) AS args", table, numbers(count))
}

// child is a table of rows that belong to messages: every so many messages have one.
type child struct {
	table, columns, values string
	every                  int
}

func children() []child {
	return []child{
		{"deliveries", "status, code, output, details, log_id, time", "'Sent', 250, '250 2.0.0 Ok: queued as 4bK2zx1Pq7z9', 'Message for someone@example.com accepted by mx.example.com', LEFT(SHA2(n,256),10), 0.42", 1},
		{"loads", "ip_address, user_agent", "'192.0.2.1', 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36'", 5},
		{"links", "token, hash, url", "LEFT(SHA2(n,256),8), LEFT(SHA2(n,256),40), CONCAT('https://example.com/offers/',n)", 10},
		{"clicks", "ip_address, user_agent", "'192.0.2.1', 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36'", 30},
		{"spam_checks", "score, code, description", "0.1, 'HTML_MESSAGE', 'HTML included in message'", 10},
	}
}

// fillChild adds children of the messages with the ids from after+1 on.
func fillChild(c child, after, count int) string {
	return fmt.Sprintf("INSERT INTO %s (message_id, %s) SELECT %d+n+1, %s FROM %s WHERE n%%%d=0", c.table, c.columns, after, c.values, numbers(count), c.every)
}

// selectQueue reads which messages are still to be sent.
func selectQueue(database string) string {
	return "SELECT message_id FROM `" + database + "`.queued_messages WHERE server_id=1"
}

// fillQueue puts the messages from an id on into the queue, beside those of other servers.
func fillQueue(first int) string {
	return fmt.Sprintf("INSERT INTO queued_messages (server_id, message_id) SELECT 1+n%%2, %d+n DIV 2 FROM %s", first, numbers(2*pending))
}
