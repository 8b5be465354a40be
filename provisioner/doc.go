// Package provisioner creates, lists, prunes and drops the tables of a mail server's message database on MySQL or MariaDB.
// A [Provisioner] is the Store that package retention works on.
//
// # The message database
//
// There is one database for each mail server. Raw mail is in a table for each UTC day, such as raw-2026-06-03; the message table points
// into these; the bookkeeping says how many bytes of mail each of them holds. The [Schema] says what all this is called. The zero one is
// Postal's, see [PostalSchema], and a database that Postal has made is used as it is.
//
// # Creating
//
// [Provisioner.Provision] makes the database. [Provisioner.InsertInto] makes the day's table when the first mail of a day comes, and books
// the mail's size. Both may be repeated, and run beside each other and beside retention in any number of processes.
//
// # Listing
//
// [Provisioner.Inventory] takes as a raw table only a base table whose name is that of a day, byte for byte. What looks like one, a view or
// raw-2024-02-30, is reported and never touched. A table counts as gone only if reading it fails with the server's error 1146: the lists of
// tables don't show what the account has no right to.
//
// # Sizes
//
// The size of a raw table is what is booked for it: bytes of mail. Where nothing is booked, or double rows differ, it is what the
// messages in it add up to, and without messages the bytes on disk. With [SizeFromStorage] all sizes are bytes on disk.
// These come from the server's list of tablespaces, which needs the right PROCESS and is read once a minute; without that from its
// statistics, which follow a bulk load within some seconds. What remains unknown is reported as unknown.
//
// # Deleting
//
// [Provisioner.DropTable] and [Provisioner.PruneMessages] work in short transactions, each with Config.Guard as its last statement.
// Messages that are held, or that Config.Pending returns, keep their rows and their mail. A day's table without the columns of a raw table
// is not dropped. [Provisioner.Reconcile] repairs what crashes, late writers and hands have left.
//
// # Sessions
//
// Nothing depends on the parameters of the DSN, the session's sql_mode, time zone or isolation, or on autocommit. A session variable that
// is set is set back before its connection returns to the pool. Names that aren't ASCII need a connection in utf8mb4, the driver's default.
// On a server with lower_case_table_names=1 the schema's names must be in lower case.
//
// # Rights
//
// The account needs SELECT, INSERT, UPDATE, DELETE, CREATE and DROP on the message database, and PROCESS for exact sizes on disk.
// Inventory needs SELECT alone.
package provisioner
