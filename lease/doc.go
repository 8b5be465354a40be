// Package lease keeps work from running twice at once: named leases are rows of a MySQL or MariaDB table, held by one
// worker at a time, renewed while it works, and stolen from it only once it can't be trusted to work any more.
// [Leases.Do] is the call that most need.
//
// A lease's holder, by the words of the field: it acquires the lease, renews it by a heartbeat within its TTL, and
// releases it. A contender that finds the lease expired steals it. Each acquisition has a fencing token, which only grows.
//
// # Clocks
//
// Expiry is decided by the server's clock inside each statement, in UTC; no worker's time is ever written. A holder
// trusts its lease for TTL - Margin, counted from before the request that proved it, by its monotonic clock and by its
// wall clock, whichever is stricter; then its context ends, also while a renewal hangs. Of a renewal without an answer
// nothing is believed.
//
// The server's clock may jump, so a lease is stolen only if it has expired by that clock and its row has also stood still
// for max(Observe, the row's TTL) of the contender's monotonic time. A row that stood still for twice that time counts as
// expired whatever the server's clock says, so that what a wrong clock wrote doesn't stay for ever. A contender that polls
// takes over after the TTL and one poll, one that has just been started after another TTL, and after two if the clock was
// set back. All that is assumed of clocks is that their rates differ by less than Margin in a TTL. These rules were checked
// exhaustively as a model, see internal/leasemodel.
//
// # Fencing
//
// A process can be paused at any point and go on after its lease was stolen. Where that matters, call [Leases.Guard] as the
// last statement of each transaction: the transaction fails if the lease has changed hands, and the lease can't change
// hands before it ends. What is written elsewhere can carry [Lease.Token], if its receiver refuses a lower one than it
// has seen.
//
// [Lease.Check] asks, without I/O, whether there is enough trusted time left for something that can't be guarded, such as a
// DDL statement with a timeout. It narrows the window and does not close it.
//
// # What a lease cannot promise
//
//   - A process that is paused between a check and an unguarded statement executes that statement after the steal.
//   - A statement that already runs on the server goes on when the lease is lost.
//   - Work that ignores its context goes on. Nothing is released then, and the guards are what is left.
//   - Side effects outside the database are not undone, and know of the token only if they are told.
//   - If the server's clock stands still for ever, rests of MinHold never end; leases of the dead are taken over all the same.
//   - After an asynchronous failover the new primary may not have the last renewals, or the last acquisition: for as long as
//     the old holder is trusted there may be two. A TTL longer than the replication lag does not prevent it.
//   - Clocks whose rates differ by more than Margin in a TTL void the promise that there are no two trusted holders, not
//     that of the guard.
//
// # Connection pools and proxies
//
// Each call takes one connection from the pool, for that call, and each is one statement and one round trip, but for the
// first ever, and for an acquire that finds the lease held. Give Leases a pool of its own, of one or two connections: a pool
// that the work has used up starves the heartbeat. The work is then ended in time, and the error says that the pool was
// exhausted. Guard runs in the work's transaction and on its connection, so the lease table must be on the same server.
//
// All connections of a pool must have the same default database and autocommit, which are read at first use. Nothing else of
// the session matters: sql_mode, time zone, character set, isolation level, clientFoundRows, parseTime and the like. Under
// autocommit=0 each statement becomes a transaction of its own.
//
// Proxies that pool connections are fine. One that sends reads to replicas makes contenders see old rows, which delays them
// and is harmless, since what they decide is decided again on the primary. A connection that turns out to be read-only is
// dropped, so that after a failover the next one can lead elsewhere.
//
// # Galera
//
// Two nodes can't both give a lease away: the second commit fails certification, and is tried again. But a commit that was
// acknowledged can be lost with its node, and a guard's row lock holds on its own node only; there it is the certification
// that fails the later transaction. Point Leases and the work's pool at one node at a time.
package lease
