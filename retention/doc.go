// Package retention keeps a mail server's message database inside its retention policy, beside any number of workers.
//
// A [Policy] says what stays: raw mail of so many days or bytes, message rows of so many days. [Policy.Plan] makes a
// [Plan] of it and of an [Inventory], purely: a person can look at it before anything goes, with a reason for every
// table that goes and every one that stays. A [Runner] carries plans out on a [Store], under a lease of a [Locker],
// and [RunAll] does so for a fleet of mail servers.
//
// The package imports nothing but the standard library. A Store for MySQL and MariaDB is
// [github.com/mailretention/mailretention/provisioner.Provisioner], a Locker
// [github.com/mailretention/mailretention/lease.Leases].
//
// # What is never deleted
//
// Whatever the limits say, these stay:
//   - everything, where a limit is nil: the zero Policy deletes nothing;
//   - the newest days, today and yesterday unless MinKeepDays of the [Policy] says how many;
//   - days under a legal [Hold], their messages too, also when the hold is given while a run is at work;
//   - tables and messages that are still needed, as the [Store] says: to be sent, or held;
//   - tables of days to come, names that are not a day's, and tables that are listed without their day;
//   - for size: any table, while the size of one that stays is unknown;
//   - more than three tables, where no day but the protected ones would be left: [ErrWouldEmpty];
//   - messages, where the newest is of more than three days before the [Cut]: [ErrWouldEmpty];
//   - anything, when the clocks of database and worker disagree, or legal holds or the queue can't be read: [ErrRefused].
//
// A check that fails keeps the data. A person decides, by [Policy] AllowEmpty, whether a plan that leaves nothing is meant.
//
// # Age, size and days
//
// A day is a UTC day by the database's clock; no zone of a process or a session matters. One rule of age holds for
// raw tables and messages: a day before today − N has expired. Size comes second, over what age leaves: the oldest
// days go until the rest fits, past those that are in use. A hold only ever keeps: no other day goes in a held day's place.
// Planning what a plan leaves drops nothing more.
//
// # A run
//
// [Runner.Run] takes the lease, reads the inventory, has the [Store] reconcile its bookkeeping where that has drifted,
// drops the tables that the plan says from the oldest on, prunes messages, and reconciles again if a table went. Context
// and holds are looked at before each table and after each batch. A table that fails is reported and the next is
// tried; three in a row end the run, as do errors that match [ErrStop] or [ErrRefused]. Every step may be repeated: what
// a run leaves undone the next one does. The [Report] is valid beside an error, and says how far the run came; an
// [Event] tells of each step.
//
// # Errors
//
// Match them with [errors.Is]: [ErrHeld] means that another worker does it, [ErrRefused] that a person should look,
// a [*TableError] names a table that failed. The end of the context matches too, by its error and its cause.
//
// # Stores and Lockers of your own
//
// Package retentiontest has both contracts as tests, and an in-memory Store and Locker for the tests of programs that
// embed this package.
package retention
