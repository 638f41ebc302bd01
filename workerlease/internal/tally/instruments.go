package tally

import "github.com/slotlease/slotlease/workerlease"

// What happens to slots and leases.
var (
	slotsWon  = counter("slots.won", "{slot}", "Slots that a worker, or another of its group, won.")
	slotsLost = counter("slots.lost", "{slot}", "Slots that another worker won.")
	inverted  = counter("slots.inverted", "{slot}", "Slots lost to a worker of lower priority, because the claim came more than a step late.")
	missed    = counterBy("reason", values(
		workerlease.Unreachable, workerlease.TooLate, workerlease.Overrunning, workerlease.Poisoned, workerlease.Denied,
		workerlease.Refused, workerlease.Ineligible, workerlease.Paused, workerlease.Drained,
	), "slots.missed", "{slot}", "Slots that a worker wanted, and that passed without a holder that it knows of, by reason.")
	slotsDone = counter("slots.done", "{slot}", "Slots whose job a worker recorded as done.")
	exhausted = counter("slots.exhausted", "{slot}", "Slots that used up Job.MaxAttempts without being done.")
	delay     = histogram("slot.delay", "How long after the start of its slot a lease began.",
		.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)
	early = histogram("claim.early", "How long before the start of its slot a claim was known to be won; 0 if after it.",
		0, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300)

	allocated = counter("leases.allocated", "{lease}", "Leases that began.")
	extended  = counter("leases.extended", "{extension}", "Extensions of leases.")
	released  = counter("leases.released", "{lease}", "Leases whose rest was given back.")
	lapsed    = counter("leases.lapsed", "{lease}", "Leases that ended because the store took no appends, though they could have gone on. Each worker reports one.")
	vanished  = counter("leases.vanished", "{lease}", "Leases whose record was replaced or overridden.")
	expired   = counterBy("reason", values(
		workerlease.WindowEnded, workerlease.Stopped, workerlease.ClockJumped, workerlease.RecordVanished, workerlease.Done,
		workerlease.Failed, workerlease.Panicked, workerlease.Ineligible, workerlease.Stalled, workerlease.Paused, workerlease.Drained, workerlease.AskedToRelease,
	), "leases.expired", "{lease}", "Leases that ended, by reason.")
	held = counter("lease.held", "s", "How long leases were held, up to now.")
)

// What the user's code does.
var (
	succeeded = counter("tasks.succeeded", "{task}", "Tasks that returned nil, and work of which Lease.Succeeded was called.")
	failed    = counterBy("reason", []string{returned, panicked, reported},
		"tasks.failed", "{task}", "Tasks that returned an error, callbacks and tasks that panicked, and work of which Lease.Failed was called.")
	duration = histogram("task.duration", "How long tasks took that returned nil.",
		.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 4*3600)
	lastSuccess = gauge("task.last_success.timestamp", "s", "When a task of this process last succeeded, in store time, as Unix time. Absent before.")
	overruns    = counter("tasks.overrun", "{task}", "Leases that were over before the code under them had returned.")
	stopsFailed = counter("workers.stop_failed", "{worker}", "Workers that could not stop in order within 10 s.")
	steppedBack = counter("workers.stepped_back", "{worker}", "How often a worker stepped back, because its code failed in slot after slot.")
)

// What is asked of the store, and what is odd about its answers.
var (
	storeOperations = counterBy("operation", operations, "store.operations", "{operation}", "Operations on the ledger.")
	storeErrors     = counterBy("operation", operations, "store.errors", "{error}", "Operations that failed, and had no effect.")
	throttled       = counterBy("operation", operations, "store.throttled", "{operation}", "Operations that the store refused for now, because it throttles.")
	unknown         = counter("store.unknown_outcomes", "{append}", "Appends whose reply leaves open whether the record was stored.")
	conflicts       = counter("store.conflicts", "{append}", "Appends that found a record of another worker.")
	charges         = counterBy("operation", operations, "store.charges", "{unit}", "What the store billed, in its own unit: request units of Cosmos DB.")
	roundTrip       = histogram("store.round_trip", "How long operations on the ledger took.",
		.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10)
	trimmed      = counter("records.trimmed", "{record}", "Old records that were deleted.")
	poisoned     = counter("ledger.poisoned", "{record}", "Records at the head of the ledger that a worker found it can't obey.")
	resets       = counter("ledger.resets", "{record}", "Records that can't be obeyed, and were superseded.")
	blocks       = counter("ledger.blocked", "{record}", "Records that were found to leave nothing to claim for more than a day after the slot.")
	mismatches   = counter("schedule.mismatches", "{record}", "How often a worker of the type was seen that has another schedule.")
	rosterFailed = counter("roster.failures", "{failure}", "Failures of the roster. Each client reports one.")
	watchFailed  = counter("watch.failures", "{failure}", "Failures of hints by the store. Each client reports one.")
	jumps        = counterBy("reason", []string{
		verdicts[workerlease.ClockInQuestion], verdicts[workerlease.AnswerDropped], verdicts[workerlease.JumpConfirmed],
	}, "clock.jumps", "{jump}", "Answers of the store's clock that contradict earlier ones, and what they came to.")
	tooUncertain = counter("clock.too_uncertain", "{worker}", "Workers that found store time too uncertain for their slots. Each reports it once.")
)

// What is so at the moment: each is asked for when it is read.
var (
	workers     = gauge("workers", "{worker}", "Workers that run in this process.")
	holding     = gauge("lease.holding", "", "1 if a worker of this process holds a lease that is valid now.")
	holderKnown = gauge("holder.known", "", "1 if a worker of this process knows that somebody holds the lease now.")
	slotDone    = gauge("slot.done", "", "1 if a worker of this process knows that the job of the slot that is now is done.")
	token       = gauge("token", "", "The highest fencing token of a lease that has begun, as far as this process has seen. It only grows.")
	healthy     = gauge("worker.healthy", "", "1 if all workers of this process are healthy: see workerlease.Status.")
	eligible    = gauge("worker.eligible", "", "1 if no worker of this process is unfit to lead by Options.Eligible.")
	blocked     = gauge("worker.blocked", "", "1 if a worker of this process can't begin anything although the store answers.")
	paused      = gauge("worker.paused", "", "1 if all workers of this process claim nothing, because an operator has paused the worker type or drained their host.")
	overrunning = gauge("worker.overrunning", "", "1 if the code of a worker of this process has not returned although its lease is over.")
	priority    = gauge("worker.priority", "", "The priority by which a worker of this process claims: the lowest number, if there are several.")
	failing     = gauge("store.failing", "{operation}", "Operations on the ledger that failed in a row, up to now.")
	warning     = gauge("store.warning", "", "1 if the store describes a shortcoming: see the log, or workerlease.Status.")
	offset      = gauge("clock.offset", "s", "How far this machine's clock is ahead of store time; negative if it is behind. No lease depends on it.")
	uncertainty = gauge("clock.uncertainty", "s", "How far store time may be from where a worker takes it to be.")
	sampleAge   = gauge("clock.sample_age", "s", "How old the newest answer of the store's clock is.")
)
