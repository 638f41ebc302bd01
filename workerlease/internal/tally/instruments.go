package tally

import (
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// What happens to slots and leases.
var (
	slotsWon  = counter("slots.won", "{slot}", "Slots that a worker or its group won.")
	slotsLost = counter("slots.lost", "{slot}", "Slots that another worker won.")
	inverted  = counter("slots.inverted", "{slot}", "Slots lost to a lower priority by a claim more than a quarter of a step late.")
	missed    = counterBy("reason", values(
		workerlease.Unreachable, workerlease.TooLate, workerlease.Overrunning, workerlease.Poisoned, workerlease.Denied,
		workerlease.Refused, workerlease.StoreWentBack, workerlease.Ineligible, workerlease.Paused, workerlease.Drained, workerlease.Unattended,
	), "slots.missed", "{slot}", "Slots that passed without a known holder, by reason.")
	slotsDone = counter("slots.done", "{slot}", "Slots whose job was recorded as done.")
	skipped   = counter("slots.skipped", "{slot}", "Slots whose job still ran for an earlier one.")
	again     = counter("slots.skipped_again", "{slot}", "Slots skipped right after another.")
	givenUp   = counter("slots.given_up", "{slot}", "Slots that used up Job.MaxAttempts undone.")
	delay     = histogram("slot.delay", "How long after the start of its slot a lease began.",
		.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)
	early = histogram("claim.early", "How long before its slot a claim was won; 0 if after.",
		0, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300)

	allocated = counter("leases.allocated", "{lease}", "Leases that began.")
	extended  = counter("leases.extended", "{extension}", "Extensions of leases.")
	released  = counter("leases.released", "{lease}", "Leases whose rest was given back.")
	lapsed    = counter("leases.lapsed", "{lease}", "Leases that ended because the store took no appends. Each worker reports one.")
	vanished  = counter("leases.vanished", "{lease}", "Leases whose record was replaced or overridden.")
	expired   = counterBy("reason", values(
		workerlease.WindowEnded, workerlease.Stopped, workerlease.ClockJumped, workerlease.RecordVanished, workerlease.Done,
		workerlease.Failed, workerlease.Panicked, workerlease.Ineligible, workerlease.Stalled, workerlease.Paused, workerlease.Drained, workerlease.AskedToRelease,
		workerlease.TimedOut,
	), "leases.expired", "{lease}", "Leases that ended, by reason.")
	held = counter("lease.held", "s", "How long leases were held.")
)

// What the user's code does.
var (
	succeeded = counter("tasks.succeeded", "{task}", "Tasks that returned nil, and calls of Lease.Succeeded.")
	failed    = counterBy("reason", []string{
		returned, panicked, reported, causes[store.TimedOut], causes[store.SlotEnded], causes[store.LeaseLost], causes[store.Ordered], causes[store.Stopped], died,
	}, "tasks.failed", "{task}", "Work that failed, panicked or was cut, and workers that have gone without a word.")
	duration = histogram("task.duration", "How long successful tasks took.",
		.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 4*3600)
	lastSuccess = gauge("task.last_success.timestamp", "s", "When a task of this process last succeeded: store time, as Unix time.")
	overruns    = counter("tasks.overrun", "{task}", "Leases that were over before their code had returned.")
	stopsFailed = counter("workers.stop_failed", "{worker}", "Workers that could not stop in order within 10 s.")
	steppedBack = counter("workers.stepped_back", "{worker}", "How often workers stepped back, since their code kept failing.")
)

// What is asked of the store, and what is odd about its answers.
var (
	storeOperations = counterBy("operation", operations, "store.operations", "{operation}", "Operations on the ledger.")
	storeErrors     = counterBy("operation", operations, "store.errors", "{error}", "Operations that failed, and had no effect.")
	throttled       = counterBy("operation", operations, "store.throttled", "{operation}", "Operations that the store throttled.")
	unknown         = counter("store.unknown_outcomes", "{append}", "Appends whose outcome is unknown.")
	conflicts       = counter("store.conflicts", "{append}", "Appends that found a record of another worker.")
	charges         = counterBy("operation", operations, "store.charges", "{unit}", "What the store billed: request units of Cosmos DB.")
	roundTrip       = histogram("store.round_trip", "How long operations on the ledger took.",
		.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10)
	trimmed      = counter("records.trimmed", "{record}", "Old records that were deleted.")
	poisoned     = counter("ledger.poisoned", "{record}", "Newest records that can't be obeyed.")
	resets       = counter("ledger.resets", "{record}", "Such records that were superseded.")
	wentBack     = counter("store.went_back", "{worker}", "How often workers noticed that the store may have lost records.")
	blocks       = counter("ledger.blocked", "{record}", "Records that leave nothing to claim for more than a day.")
	mismatches   = counter("schedule.mismatches", "{record}", "Workers seen that have other slots, or do something else.")
	rosterFailed = counter("roster.failures", "{failure}", "Failures of the roster. Each client reports one.")
	watchFailed  = counter("watch.failures", "{failure}", "Failures of hints. Each client reports one.")
	jumps        = counterBy("reason", []string{
		verdicts[event.ClockInQuestion], verdicts[event.AnswerDropped], verdicts[event.JumpConfirmed],
	}, "clock.jumps", "{jump}", "Answers of the store's clock that contradict earlier ones, by verdict.")
	tooUncertain = counter("clock.too_uncertain", "{worker}", "Workers that found store time too uncertain.")
)

// What is so at the moment: each is asked for when it is read.
var (
	workers     = gauge("workers", "{worker}", "Workers that run in this process.")
	holding     = gauge("lease.holding", "", "1 if a worker of this process holds a valid lease.")
	holderKnown = gauge("holder.known", "", "1 if a worker of this process knows of a holder. No value before the first slot of a type.")
	running     = gauge("task.running", "", "1 if user code runs under a lease of this process.")
	doneUntil   = gauge("job.done_until.timestamp", "s", "The end of the newest slot whose job is done, or was skipped by a run that succeeded, as Unix time.")
	due         = gauge("job.due.timestamp", "s", "When the job becomes overdue, as Unix time: the latest start of the next slot, or the end of a held one, or with Finish of the one after it.")
	slotDone    = gauge("slot.done", "", "1 if the job of the present slot is known to be done.")
	token       = gauge("token", "", "The highest fencing token that this process has seen.")
	healthy     = gauge("worker.healthy", "", "1 if all workers of this process are healthy.")
	eligible    = gauge("worker.eligible", "", "1 if all workers of this process are fit by Options.Eligible.")
	blocked     = gauge("worker.blocked", "", "1 if a worker of this process can't begin anything although the store answers.")
	paused      = gauge("worker.paused", "", "1 if a pause or drain keeps all workers of this process from claiming.")
	overrunning = gauge("worker.overrunning", "", "1 if code of this process runs although its lease is over.")
	priority    = gauge("worker.priority", "", "The lowest priority number of a worker of this process.")
	failing     = gauge("store.failing", "{operation}", "Operations that failed in a row, up to now.")
	warning     = gauge("store.warning", "", "1 if the store describes a shortcoming (see the log).")
	offset      = gauge("clock.offset", "s", "How far this machine's clock is ahead of store time.")
	uncertainty = gauge("clock.uncertainty", "s", "How far off a worker's store time may be.")
	sampleAge   = gauge("clock.sample_age", "s", "Age of the newest answer of the store's clock.")
)
