// Package leasemodel has a model of the leases of package lease, and a test that lets the model checker spin look through
// all that two workers, lost and late requests, pauses, crashes and any clock of the server can lead to. Each rule has a
// twin without it, which must fail. What stands for which statement is said at the head of lease.pml.
package leasemodel
