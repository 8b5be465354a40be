/* The row lease of package lease as a model for the checker spin: one row, N workers, G ghosts, discrete time.
 *
 * What stands for what (statements: lease/sql.go):
 *   ACQ   table.acquire and table.seize, and the look (table.read) that follows when no row was affected;
 *         table.insert is left out: it is an acquire of a row that is free
 *   REN   table.renew            REL   table.release
 *   RELN  table.abandon          WR    a write and table.guard, in one transaction
 *   FORCE table.revoke           DDL   a statement that no guard protects
 *   obsv, obsage   the sight that memory.observe keeps: is the row still like that, and since when
 *   qmay           the stale of a claim: 1 once expired, 2 whatever the server's clock says
 *   trust          Lease.left: counted from before the request, TTL-MARGIN long
 *   ws             0 no lease; 1 acquisition.confirm has to renew first; 2 trusted; 3 past it (Lease.Renew may bring it back)
 *   dropnonce      the end of a holder value: an acquisition that gave up, a lease that was released or lost
 *
 * What is checked:
 *   P1  no two workers trust that they hold the lease at once (assert in granted)
 *   P2  a guarded write executes only under the newest token, so writes are in token order (assert in execg)
 *   P3  once all others are dead, a worker that polls has the lease in BOUND ticks (assert in tick, with CALM)
 *
 * Abstractions, exact for these properties:
 *  - times are countdowns, so no clock grows;
 *  - seq and token are only compared for equality with the row's present value and never come back, so what is known of
 *    them is one bit "still equal"; with WRITES the token is a number too (up to MAXTOK);
 *  - a holder value is an id: i+1 is the present one of worker i, higher ones were dropped but are still in the row or
 *    under way;
 *  - a ghost is a request whose sender gave up: it executes at any later time, or never. The one request that each worker
 *    waits for comes on top;
 *  - no step is urgent (but with CALM), so a pause of any length at any point is included.
 *
 * Not modelled: failover, Galera, lock waits, a commit after the guard.
 */
#ifndef N
#define N 2
#endif
#ifndef G
#define G 1
#endif
#ifndef TTL
#define TTL 4
#endif
#ifndef MARGIN
#define MARGIN 1
#endif
#ifndef OBSERVE
#define OBSERVE TTL     /* Leases.patience */
#endif
#ifndef DRIFT
#define DRIFT 0         /* the holder's clock may lose this much in a trusted interval, against the others */
#endif
#ifndef JUMPS
#define JUMPS 0         /* jumps of the server's clock by JA or JB; with ANYCLOCK it says anything at any time */
#endif
#ifndef JA
#define JA 12
#endif
#ifndef JB
#define JB 3
#endif
#ifndef MINHOLD
#define MINHOLD 0
#endif
#ifndef MAXTOK
#define MAXTOK 4
#endif
#ifndef BOUND
#define BOUND 99
#endif
#define TRUST (TTL-MARGIN+DRIFT)
#define OMAX (2*OBSERVE)    /* wrongClockFactor */

#define ACQ  1
#define REN  2
#define REL  3
#define RELN 4
#define WR   5
#define DDL  6
#define REVOKED 15    /* the holder of sixteen zero bytes */

/* the row */
byte rh;                 /* holder: 0 free */
#ifndef ANYCLOCK
short exp, nb, aqd;      /* expires_at, not_before, acquired_at, minus the server's now */
#endif
#ifdef WRITES
byte rtok, lastw;
#endif

/* workers */
byte ws[N];              /* 0 no lease, 1 token known but not trusted (renew first), 2 trusted, 3 past trustedUntil */
byte trust[N];           /* true ticks until trustedUntil */
bit  tm[N];              /* known token == row's token */
#ifdef WRITES
byte wtok[N];
#endif
bit  obsv[N];            /* observed (token,seq) == the row's */
byte obsage[N];
/* the request that a worker waits for */
byte qst[N];             /* 0 none, 1 sent, 2 answer ok, 3 answer 0 rows, 4 answer: the holder is you */
byte qk[N];
bit  qf[N];              /* ACQ sent: CAS equal; else: token equal */
bit  qsv[N];             /* snapshot in the answer still equal */
byte qmay[N];            /* 1: observed for OBSERVE, 2: for OMAX */
byte qage[N];
/* ghosts */
byte gk[G]; byte gn[G]; bit gf[G]; byte gm[G];
#ifdef WRITES
byte gt[G];
#endif
#ifdef CALM
bit calm, polled; byte since;
#define NOTCALM (!calm)
#else
#define NOTCALM true
#endif
#if JUMPS>0
byte jumps;
#endif
#ifdef FORCE
#ifdef MAXFORCE
byte forces;
#define FORCELEFT (forces<MAXFORCE)
#else
#define FORCELEFT true
#endif
#endif

byte a, b, o, ok, x; short tr;   /* scratch, 0 between steps */
#define RST a=0; b=0; o=0; ok=0; x=0; tr=0

#include "server.pml"
#include "worker.pml"
