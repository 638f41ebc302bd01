// Package workerlease runs work on one of many machines at a time. The machines need
// nothing in common but a database.
//
// Time is cut into slots, such as every 5 minutes or from one firing of a cron schedule to
// the next. For each slot, one worker of a worker type gets the lease, by priority. It may
// work until shortly before the slot ends.
//
// # Use
//
// [Run] calls a task in each slot that this process wins, ends the task's context in time,
// and waits for the task:
//
//	o := workerlease.Options{WorkerType: "invoice-export", LeaseInterval: 5 * time.Minute}
//	err := workerlease.Run(ctx, ledger, o, func(ctx context.Context, l workerlease.Lease) error {
//		return exportInvoices(ctx, l.Token) // stops when ctx ends
//	})
//
// [StartTask] does the same in the background, and returns the worker: its Status is for
// health checks, and its RunIfHeld runs something only under the lease.
//
// [StartLeasing] calls back when a lease begins and when it ends:
//
//	w, err := workerlease.StartLeasing(ctx, ledger, o, workerlease.Callbacks{
//		LeaseAllocated: func(ctx context.Context, l workerlease.Lease) { … },
//		LeaseExpired:   func(l workerlease.Lease, why workerlease.Reason) { … },
//	})
//
// [TryClaim] claims the current slot, once and now:
//
//	claim, err := workerlease.TryClaim(ctx, ledger, o)
//
// A ledger is opened by one of the packages below store, such as store/postgres. Its Init
// creates what is missing; without it these functions return store.ErrMissing, see
// [Client.Ready]. They log warnings and errors to slog.Default(). Their namesakes of a [Client]
// log as its options say, and share one measurement of time among many workers.
//
// [Options] decide what happens when a worker dies: another takes over within
// FailoverWithin. With Continuous, a leader works on from slot to slot. A Job is done once
// for each slot. The examples show each.
//
// # Glossary
//
//   - worker type: what workers compete for, such as "invoice-export".
//   - worker: one participant, started by one call. Its InstanceID is only a label.
//   - group: workers that share a lease on purpose.
//   - lease: the right to work for one window. Its holder is a worker or a group.
//   - standby: a worker that waits to take over the rest of a slot.
//   - slot, boundary: an interval of the schedule, and the time at which it starts.
//   - window, part: the interval that a record grants; with FailoverWithin, part of a slot.
//   - term: one claim's window and all its extensions, under one token.
//   - ledger, record, head: the records of one worker type, one of them, the newest.
//   - claim: an attempt to append the record that grants a slot; also its random id.
//   - extend, release: append the next window of a term; give up the rest of one.
//   - lead: how long before a boundary claims for its slot open.
//   - turn, step: when a priority may claim, and the time between two turns.
//   - token: the fencing token of a lease, higher than all before it.
//   - store time: what the store's clock shows. Uncertainty is how far a worker's
//     measurement of it may be off.
//   - margin: the time before the end of a window in which no work is done.
//   - roster: what workers say of themselves, for people and for who goes first. No lease is decided by it.
//   - done: said of a slot whose Job has succeeded.
//   - outcome: the result of the work of a slot, as its worker records it for people (store.Outcome).
//   - outcome unknown: said of an append whose reply leaves open whether it was stored.
//   - poison: a head that no correct worker can have written, or that can't be read. It is
//     reported, never obeyed, and never taken for a free slot.
//   - override: a record by which an operator ends whatever is in force.
//   - unreachable record: poison above a free key. The ledger goes on below it.
//
// # Guarantees
//
// Two assumptions: each worker's measurement contains the store's time, and a stored record
// stays stored. Then at any moment at most one holder works, and tokens grow from lease to
// lease. Networks may delay messages, and processes may pause, for any time.
//
//   - LeaseAllocated, or a task, starts only inside the window. Its context ends at the
//     last safe moment, by its own timer, also while the store is down.
//   - LeaseExpired is called exactly once for each LeaseAllocated.
//   - A lease is released only after the user's code has returned.
//   - A lease that has ended is never resumed, whatever becomes known later.
//   - A slot that is done is not granted again, and a slot is not tried more often than
//     Job.MaxAttempts.
//   - Store errors don't end leasing, nor a lease that is held.
//   - The time of day of a worker's machine plays no part. On Linux, a suspend of the
//     machine is noticed within 1 s of waking.
//
// Not guaranteed: a process that pauses after its last check may write late, so a resource
// should refuse a token lower than the highest it has seen. If the store's own clock jumps
// further than Margin and the servers' skew, if the store loses records that it had acknowledged, if a virtual machine is
// frozen, or if an operator overrides the lease of a holder that lives (see package operate), two
// leases may overlap; their tokens differ, except after such a loss. A job may run
// again if its worker dies before the job is recorded as done.
//
// docs/guarantees.md says more, and docs/protocol.md explains how it works.
package workerlease
