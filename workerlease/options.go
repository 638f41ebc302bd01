package workerlease

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Options of a worker. Only WorkerType is required: the zero value of every
// other field is its default.
type Options struct {
	// WorkerType is what is competed for: 1 to 63 of A-Z a-z 0-9 . _ - and the
	// first a letter or a digit. All workers of a type should have the same
	// schedule; if they differ, they stay exclusive all the same, and it is
	// reported.
	WorkerType string

	// InstanceID labels this worker in records and logs. At most 256 bytes.
	// Default: host-pid-xxxx. It is a label only: two workers with one InstanceID
	// are still two workers.
	InstanceID string

	// Group makes workers share a lease on purpose: when one of a group wins a
	// slot, all of it are allocated, with one token; a member that starts in
	// mid-slot joins at once; nobody ever releases the group's lease. At most 256
	// bytes. Default: no group.
	Group string

	// Priority is 0 (the highest, the default) to 7. A lower priority gets its
	// turn one step later, all of them before the boundary.
	Priority int

	// TieBreak orders workers of one priority: Sticky (the default, the holder of
	// the slot before goes first), Rotate (it goes last) or Random.
	TieBreak priority.TieBreak

	// LeaseInterval is the length of the slots, aligned to the clock: whole
	// milliseconds, 100 ms to 366 days. Default: 5 min. Not with Schedule.
	LeaseInterval time.Duration

	// Schedule cuts time into slots another way, as slots.Cron does. Not with
	// LeaseInterval.
	Schedule slots.Schedule

	// FailoverWithin makes somebody else take over what is left of a slot when the
	// worker that has it dies: so long after its death at most, the turn of its
	// priority, what the store takes, and up to four times the uncertainty of store
	// time. What is left behind the last part of a slot, less than FailoverWithin and
	// Lead, is lost. The lease is then taken for a part of the slot at a time, and
	// extended a quarter of FailoverWithin (at most 5 min) before that ends: about
	// 4/3 × slot/FailoverWithin appends and a read every 2 min, and as many reads of each
	// other worker; and as many records are kept for Retention. At least 8 × Margin, and at
	// most half of the shortest slot. Default: the slot is lost. Not with Group.
	//
	// Work in a part of the slot begins when the uncertainty of store time has passed
	// (Status has it), and ends that much and Margin before the part does; the shortest
	// part, of a take-over, is a quarter of FailoverWithin. So it should be at least 8 ×
	// the uncertainty and 4 × Margin: about 1 s where the clocks of servers may be 100 ms
	// apart. With less, parts of slots are lost, or all of them. The uncertainty is known
	// only while leasing: the event TooUncertain tells, once, and so does Callbacks.Error.
	FailoverWithin time.Duration

	// Continuous makes the worker that wins successive slots go on from one to the
	// next: one lease, one token, and LeaseExtended in place of LeaseExpired and
	// LeaseAllocated. A worker of a higher priority still takes over at the next
	// boundary. Nobody works for a moment then: the one stops Margin and up to twice its
	// uncertainty of store time (Status.Uncertainty) before the boundary, and the other
	// begins up to twice its own behind it; some milliseconds of waking up apart. So it
	// is at every boundary without Continuous. Not with Group.
	Continuous bool

	// NoFailback, with Continuous, keeps the lease where it is for as long as its
	// worker lives: it goes on before anybody else may claim. All workers of the type
	// should have it.
	NoFailback bool

	// Job makes the task of Run a job that is done once for each slot. Default: nil, no
	// job: the task, or the callbacks, run while the lease is held. Only with Run,
	// StartTask and TryClaim; not with Group, nor with Continuous. The value is copied.
	Job *Job

	// MinBackoff is how long a worker waits before it repeats a ledger operation that
	// failed. Each further failure in a row doubles the wait, up to MaxBackoff; up to half
	// of it is taken off at random. An eighth of the slot bounds both. A store that asks
	// for a longer wait gets it. 1 ms to 1 h, and at most MaxBackoff. Default: 100 ms, or
	// MaxBackoff if that is shorter.
	MinBackoff time.Duration

	// MaxBackoff is the longest wait between two tries. 1 ms to 1 h. Default: 5 s, or
	// MinBackoff if that is longer.
	MaxBackoff time.Duration

	// JoinMidSlot makes a worker claim what is left of the slot in which it
	// starts, if nobody has it. Default: it waits for the next boundary. A worker
	// that was there before the boundary, but couldn't reach the store, always
	// claims what is left.
	JoinMidSlot bool

	// Lead is how long before a boundary claims open: at most 5 min, and never
	// more than half of the slot before, or of FailoverWithin. Default: a quarter of
	// the slot before, at most 10 s and half of FailoverWithin.
	Lead time.Duration

	// Step is the distance between the turns of two priorities. Default: a tenth
	// of Lead. It is widened when the store is slow or its time uncertain, and
	// narrowed so that the last turn comes before the boundary.
	Step time.Duration

	// Margin is how long before the end of a window work stops, on top of the
	// uncertainty of store time. At least 10 ms and less than half a slot. Default:
	// a hundredth of the shortest slot and a twentieth of FailoverWithin, at most
	// 250 ms.
	Margin time.Duration

	// Retention is how long records are kept; at least 2 h. Default: 24 h. The
	// newest 100 are kept however old.
	Retention time.Duration

	// Metadata is stored with each claim, for people to read: at most 8 KiB.
	Metadata string
}

// Job is a task that is done once for each slot. When the task of Run returns nil, a done
// record closes the slot, and no worker runs it again. When it fails, or its worker dies,
// others try again, by Options.FailoverWithin: by default a quarter of the shortest slot,
// at most a minute and at least 8 × Margin. All workers of the type should have the same
// Job and the same schedule: a long slot that is done covers all shorter ones up to its
// end.
type Job struct {
	// MaxAttempts is how often a slot is tried at most, by all workers together. The
	// attempts are counted in the ledger when the slot is claimed. 0 to 1,000,000.
	// Default: 0, as often as the slot's time allows.
	MaxAttempts int

	// RunMissed makes up for the newest slot that no worker did: in the next slot, the
	// task is called for the missed slot first, and then for its own. It is called once,
	// whatever its outcome, and not at all if the worker that has claimed the next slot
	// dies. Older slots are skipped, and so are those before the first that was ever
	// done. While a slot's work goes on, the next slot is not claimed before its
	// boundary. Default: missed slots are skipped.
	RunMissed bool
}

const (
	// DefaultRetention is how long records are kept by default.
	DefaultRetention = 24 * time.Hour
	// MinRetention is the least Options.Retention.
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

func (o Options) machine(rules machine.Rules) machine.Machine {
	return machine.Machine{Config: machine.Config{
		Rules:      rules,
		WorkerType: o.WorkerType, InstanceID: o.InstanceID, Group: o.Group,
		Priority: o.Priority, TieBreak: o.TieBreak, Schedule: o.Schedule,
		Lead: o.Lead, Step: o.Step, Margin: o.Margin, JoinMidSlot: o.JoinMidSlot,
		Once: o.Job != nil, MaxAttempts: o.job().MaxAttempts, RunMissed: o.job().RunMissed, MinBackoff: o.MinBackoff, MaxBackoff: o.MaxBackoff,
		Failover: o.FailoverWithin, Continuous: o.Continuous, NoFailback: o.NoFailback,
		Retention: o.Retention, Metadata: o.Metadata,
		Worker: store.Worker{Host: host(), PID: os.Getpid(), Version: Version()},
	}}
}

func host() string {
	h, err := os.Hostname()
	if err != nil || h == "" {
		return "unknown"
	}
	return strings.ToValidUTF8(h[:min(len(h), 200)], "")
}

func defaultInstanceID() string {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%s-%d-%s", host(), os.Getpid(), hex.EncodeToString(b[:]))
}
