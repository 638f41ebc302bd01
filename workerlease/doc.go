// Package workerlease lets workers on many machines take turns by the clock.
//
// Workers of one worker type line up on the boundaries of a schedule. For each
// slot exactly one of them (or one group) is allotted the lease, by priority,
// through records in a document store that all of them reach. It gets
// LeaseAllocated when its slot starts and LeaseExpired when it ends:
//
//	w, err := workerlease.StartLeasing(ctx, ledger,
//		workerlease.Options{WorkerType: "invoice-export", Priority: 0},
//		workerlease.Callbacks{
//			LeaseAllocated: func(ctx context.Context, l workerlease.Lease) { … },
//			LeaseExpired:   func(l workerlease.Lease, why workerlease.Reason) { … },
//		})
//
// # One slot
//
//	     lead               slot
//	┌───────────────┬───────────────────────────────────────┬──▶ store time
//	0 1 2 … turns   T                                    margin
//	│               │◀──────── the holder works ────────▶│  T'
//	└ claim: read the head, append the next record
//
// Claims open a lead before the boundary T, and each priority has its turn, so
// that a dead higher priority costs no working time. A worker whose claim is the
// one that was stored waits for T. Everyone else read the head once, and waits
// for the next lead. Between a slot's start and the next lead nothing is read or
// written, unless leases are extended.
//
// # Going on
//
// What one claim began is a term. Its holder may extend it: append another grant,
// with the same claim and token, that starts where the last one ends, if nobody else
// has. With Options.FailoverWithin a slot is taken in such parts, each extended well
// before its end, so that a standby takes over soon when that fails to come; it looks
// at the ledger when a part ends, in the order of the priorities. All of the slot
// is taken before claims for the next one open: nobody ever claims over a gap that
// a living holder may still fill. With Options.Continuous the winner of successive
// slots extends its term over the boundary.
//
// Run calls a task instead of callbacks. With Options.OncePerSlot a done record closes
// a slot; it changes nothing of the term in the head. What is done, and how often a
// slot was tried, is repeated by every record, so that the head alone tells it.
//
// # What the store is authoritative for
//
// Which records exist, and what time it is. A worker type's ledger is a sequence
// of write-once records, 1, 2, 3 …; the only operation that has to be atomic is
// "insert unless the key exists" (see package store). A grant gives its holder
// one window [Start, End) of store time. A window never starts before the one in
// the head ends, and expiry is what the record says, so workers with different
// intervals stay exclusive.
//
// # Time
//
// Nobody's clock is trusted. Each client measures how far the store's clock is
// from its own monotonic (on Linux: boot time) reading, and knows an interval
// that surely contains store time: it widens by 1000 ppm of its age, and every
// sample narrows it. Work is allowed only while the whole interval lies inside
// the window, with Options.Margin to spare at the end. The time of day of a
// worker's machine plays no part: it may be an hour wrong, or be set, without
// any effect.
//
// # Guarantees
//
// If every worker's interval contains store time, and a stored key stays stored,
// then at any moment at most one holder works, and fencing tokens strictly
// increase from lease to lease. No bound on message delays or pauses is needed
// for that.
//
//   - LeaseAllocated starts only when store time is surely inside the window, and
//     its context ends at the last safe moment, by a timer of its own.
//   - LeaseExpired comes exactly once for each LeaseAllocated.
//   - A term that was left, because its window ended, a clock jumped or leasing was
//     stopped, is never worked under or extended again, whatever is learnt later.
//   - With OncePerSlot, a slot is never begun again behind its done record, nor more
//     often than MaxAttempts, all workers taken together.
//   - A claim is known to be one's own before anyone works under it: after every
//     doubtful reply the record is read back and its random claim id compared.
//   - A lease is released only after the user's code has returned.
//   - No error of the store ends leasing. A lease that is held goes on without
//     the store.
//   - On Linux, a suspend of the machine is noticed within 1 s of waking.
//
// # Not guaranteed
//
//   - A process that is paused right behind its last check (Lease.Valid) may act
//     after its window. Only a resource that checks the token can refuse that.
//   - While the store's own clock jumps (it is set, or a failover brings a server
//     whose clock differs) by more than margin and ServerSkew, a worker that was
//     just started can't know. It is reported, and fenced, not prevented.
//   - A restored backup, a deleted head, or a frozen virtual machine (both its
//     clocks stop) is beyond what a lease can notice.
//
// # Goroutines
//
// A worker has one goroutine of its own. Ledger operations and callbacks run on
// goroutines that end with them.
package workerlease
