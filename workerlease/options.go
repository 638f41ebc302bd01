package workerlease

import (
	"context"
	"os"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/self"
)

// Options of a worker. Only WorkerType is required. The zero value of every other field
// stands for its default. Bounds that depend on slots go by the shortest slot of the
// schedule.
type Options struct {
	// WorkerType is what workers compete for: 1 to 63 of A-Z a-z 0-9 . _ - that begin with
	// a letter or a digit. All workers of a type should have the same schedule. If they
	// differ, they still exclude each other, and a worker that reads another schedule in
	// the ledger reports a ScheduleMismatch.
	WorkerType string

	// LeaseInterval is the length of the slots, which are aligned to the clock: whole
	// milliseconds, 100 ms to 366 days. Default: 5 min. Not with Schedule.
	LeaseInterval time.Duration

	// Schedule is another way to cut time into slots, such as
	// slots.Must(slots.Cron("0 2 * * *", "Europe/Berlin")). Default: LeaseInterval.
	Schedule slots.Schedule

	// Priority is 0 (the highest, the default) to 7. A lower priority may claim one Step
	// later. All priorities may claim before the boundary.
	Priority int

	// TieBreak orders workers of one priority: with Sticky (the default) the last holder
	// goes first, with Rotate it goes last, and with Random the order is random. With Spread many
	// worker types spread evenly over the clients that have a worker for each; it needs ClientOptions.Roster.
	TieBreak priority.TieBreak

	// InstanceID labels this worker in records and logs: at most 256 bytes. It need not be
	// unique: two workers with one InstanceID still compete. Default: host-pid-xxxx.
	InstanceID string

	// Group makes workers share a lease on purpose. When one worker of a group wins a slot,
	// all of them are allocated, with one token. A member that starts in mid-slot joins at
	// once. The lease of a group is never released. At most 256 bytes. Default: no group.
	Group string

	// FailoverWithin is how soon another worker takes over the rest of a slot when its
	// holder dies. Default: 0, the rest of the slot is lost. At least 8 × Margin, at most
	// half of a slot. Not with Group.
	//
	// The time counts from the death. Add the standby's turn, store latency, and up to 4 ×
	// the uncertainty of store time. At the end of a slot, less than FailoverWithin and
	// Lead may be lost.
	//
	// The lease is taken for a part of the slot at a time, and extended before each part
	// ends. For each slot this costs about 4/3 × slot/FailoverWithin appends, as many reads
	// by each standby, and a read by the holder every 2 min; before each extension if the store is no
	// store.Follower. A standby looks when a part ends or,
	// if the store hints at a release (see store.Watcher), at once.
	//
	// Work in a part begins later and ends earlier by the uncertainty of store time. So the
	// value should be at least 8 × the uncertainty and 4 × Margin: about 1 s where the
	// clocks of the store's servers may differ by 100 ms. With less, parts of slots are
	// lost, and the event TooUncertain reports it. A store may have a floor, below which
	// no worker starts: about 11 s where time comes from the Date of HTTP replies, see
	// store.Description.
	//
	// A lease survives an outage of the store that is shorter than a fifth of this, less
	// Margin and the uncertainty: set 65 s for elections of 12 s, which MongoDB's take by
	// default. The event Lapsed reports an outage that cost a lease. If operations take longer
	// than a fifth of this (an eighth if the store isn't a store.Follower), no extension comes
	// in time, and each lease ends with its first part.
	FailoverWithin time.Duration

	// Continuous lets a worker that wins successive slots work on from one to the next:
	// one lease, one token, and LeaseExtended in place of LeaseExpired and LeaseAllocated.
	// A worker of a higher priority still takes over at the next boundary. Between two
	// holders no worker works for a moment: Margin, up to 2 × the uncertainty of each, and
	// some milliseconds. A lease goes on over an outage of the store at a boundary that is
	// shorter than Lead. Default: a lease ends with its slot. Not with Group.
	Continuous bool

	// NoFailback, with Continuous, lets a holder keep the lease as long as it lives, also
	// when a worker of a higher priority comes back. All workers of the type should have
	// it.
	NoFailback bool

	// Job makes the task of Run a job that is done once for each slot. The value is copied.
	// Default: nil, the task runs while the lease is held. Only with Run, StartTask and
	// TryClaim; not with Group, nor with Continuous.
	Job *Job

	// Eligible decides whether this worker is fit to lead: nil says that it is, an error why not.
	// It is asked before each claim and, while a lease is held, every EligibleEvery. A worker
	// that isn't fit claims nothing, at no cost to the others. A holder that is no longer fit
	// loses its lease, with the Reason Ineligible, and gives back the rest of the slot when its callbacks
	// have returned: with FailoverWithin another worker takes over, without it the next slot is the next chance of others. A member of a
	// Group stops its own work, and the others go on. Default: nil, always fit.
	//
	// It is called on a goroutine of its own, one call at a time. A panic counts as an error, and
	// so does a call that takes longer than EligibleTimeout, when its context ends, by the
	// client's clock. The answer decides about order only: leases exclude each other whatever it is.
	Eligible func(ctx context.Context) error

	// EligibleEvery is how long an answer of Eligible counts before it is asked again: 10 ms to 1 h. So a holder that is no longer
	// fit is noticed within EligibleEvery and EligibleTimeout. Default: 10 s, at most an eighth of
	// the shortest slot and a quarter of FailoverWithin.
	EligibleEvery time.Duration

	// EligibleTimeout bounds a call of Eligible: at most EligibleEvery. Default: half of that, at most 1 s.
	EligibleTimeout time.Duration

	// KeepIneligible lets a holder that is no longer fit keep its lease, and extend it as ever.
	KeepIneligible bool

	// ProgressWithin ends a lease, with the Reason Stalled, whose code has not called
	// Lease.Progress for so long: 10 ms or more, by the local clock. When the callbacks have returned, the
	// rest of the slot is given back: with FailoverWithin another worker takes over. Code that
	// hangs for good keeps its part of the slot. Code that rests (see Run) needs no progress.
	// Default: 0, no progress is needed.
	ProgressWithin time.Duration

	// Policy decides the priority by which the worker claims, in place of Priority, by what the workers
	// say of themselves: see [Policy]. It needs ClientOptions.Roster. As long as the roster isn't known,
	// Priority counts. Default: nil, Priority always counts.
	Policy Policy

	// Labels are said of the worker in the roster, for policies and for people: at most 32, with names of 1
	// to 63 bytes and values of at most 256. The map is copied.
	Labels map[string]string

	// WaitForBoundary makes a worker that starts wait for the next slot. Default: with
	// FailoverWithin, Continuous or a Job it takes what is left of the current slot, if that is free
	// and, for a job, if it may still begin (see Job.StartWithin). Without any of these, and in a
	// Group, a worker waits for the next boundary anyway.
	WaitForBoundary bool

	// DrainTimeout lets the run of a Job that is under way when the worker is told to stop go on for so long, by the client's
	// clock: its lease is extended, and nothing more is claimed. When it has ended, or takes longer, the worker stops. At most
	// 366 days, and only with Job. Default: 0, the run is told to end at once.
	DrainTimeout time.Duration

	// Work names what this worker does, such as the job's binary and version: at most 128 bytes. A worker of the type that says
	// something else competes all the same, though only one of two jobs is done then: the event WorkMismatch, status and doctor of
	// leasectl say so. Default: empty, nothing is said.
	Work string

	// Metadata is stored with each claim, for people to read: at most 8 KiB.
	Metadata string

	// Lead is how long before a boundary claims open: at most 5 min, half of the slot
	// before, and half of FailoverWithin. Default: a quarter of the slot before, at most
	// 10 s and half of FailoverWithin.
	Lead time.Duration

	// Step is the time between the turns of two priorities: at most 5 min. It is widened
	// if the store's time is uncertain or its latency varies, and narrowed so that the last
	// turn comes before the boundary. Default: a tenth of Lead.
	Step time.Duration

	// Margin is how long before the end of a window work stops, on top of the uncertainty
	// of store time: at least 10 ms, less than half of a slot, at most an eighth of
	// FailoverWithin, and at most 2.5 min with it. Default: a hundredth of a slot, at
	// most 250 ms and a twentieth of FailoverWithin, at least 10 ms.
	Margin time.Duration

	// MinBackoff is how long a worker waits before it repeats a ledger operation that
	// failed. Each further failure in a row doubles the wait, up to MaxBackoff or an eighth
	// of the slot. Up to half of the wait is taken off at random. A store that asks for a
	// longer wait gets it, but no more than one slot or 1 h. 1 ms to 1 h, and at most
	// MaxBackoff. Default: 100 ms, or MaxBackoff if that is shorter.
	MinBackoff time.Duration

	// MaxBackoff is the longest wait between two tries. 1 ms to 1 h. Default: 5 s, or
	// MinBackoff if that is longer.
	MaxBackoff time.Duration

	// Retention is how long records are kept: at least 2 h. The newest 100 records are
	// kept however old they are. Default: 24 h; with a Job JobRetention of the shortest slot.
	Retention time.Duration
}

// JobRetention is the default of Options.Retention with a Job whose slots have a length: 14 days, or 100 slots if that is longer, so
// that the ledger still knows on Monday what failed on Friday. For short slots it is less, 2000 of them but at least
// DefaultRetention: each of them is some records.
func JobRetention(slot time.Duration) time.Duration {
	slot = min(slot, slots.MaxInterval)
	return min(max(14*24*time.Hour, 100*slot), max(2000*slot, DefaultRetention))
}

const (
	// DefaultRetention is the default of Options.Retention without a Job.
	DefaultRetention = 24 * time.Hour
	// MinRetention is the least Options.Retention: 2 h.
	MinRetention = machine.MinRetention
	// MinMargin is the least Options.Margin.
	MinMargin = 10 * time.Millisecond
)

// job is Job, zero if there is none.
func (o *Options) job() Job {
	if o.Job == nil {
		return Job{}
	}
	return *o.Job
}

// joins reports that a worker takes what is left of the slot in which it starts.
func (o *Options) joins() bool {
	return !o.WaitForBoundary && o.Group == "" && (o.FailoverWithin > 0 || o.Continuous || o.Job != nil)
}

// startWithin is Job.StartWithin, as the machine has it.
func (o *Options) startWithin() time.Duration {
	if within := o.job().StartWithin; within != 0 {
		return within
	}
	return machine.DefaultStart
}

func (o Options) machine(rules *machine.Rules) machine.Machine {
	return machine.Machine{Config: machine.Config{
		Rules:      rules,
		WorkerType: o.WorkerType, InstanceID: o.InstanceID, Group: o.Group,
		Priority: o.Priority, TieBreak: o.TieBreak, Schedule: o.Schedule,
		Lead: o.Lead, Step: o.Step, Margin: o.Margin, Joins: o.joins(),
		Once: o.Job != nil, MaxAttempts: o.job().MaxAttempts, CatchUp: machine.CatchUp(o.job().CatchUp), CatchUpFrom: o.job().CatchUpWithin, StartWithin: o.startWithin(), Finishes: o.Job != nil && o.Job.Overrun == Finish, Timeout: o.job().Timeout, LeastRetry: o.job().MinRetry, MinBackoff: o.MinBackoff, MaxBackoff: o.MaxBackoff,
		Failover: o.FailoverWithin, Continuous: o.Continuous, NoFailback: o.NoFailback,
		Checks: o.Eligible != nil, CheckEvery: o.EligibleEvery, CheckTimeout: o.EligibleTimeout, KeepsUnfit: o.KeepIneligible, Stall: o.ProgressWithin,
		Retention: o.Retention, Metadata: o.Metadata, Work: o.Work,
		Worker: store.Worker{Host: self.Host(), PID: os.Getpid(), Version: Version()},
	}}
}
