package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Roster is a Ledger that also keeps who is there: one document for each worker, in a collection or
// table of its own, which Init creates. It is for people who look, and for the order in which workers
// claim. No lease is decided by it, so it may lose what it keeps, or show what is old. It is safe for
// concurrent use.
type Roster interface {
	// Attend stores each presence in place of the one with its key (WorkerType, ID), if there is
	// one. It returns ErrInvalid, and has stored nothing, if Check fails for any of them, and
	// ErrMissing if Init is to be called first. After another error some may be stored.
	Attend(ctx context.Context, presences []Presence) error

	// Leave removes the presences of a worker type with these IDs, as far as they are there.
	Leave(ctx context.Context, workerType string, ids []string) error

	// Presences lists the presences of a worker type, or of all if it is empty, in the order of
	// their keys. What can't be decoded, or doesn't pass Check, is passed over: another version or
	// program may have written it. The store removes none because of its age.
	Presences(ctx context.Context, workerType string) ([]Presence, error)
}

// PartialRoster is a Roster whose list of all worker types leaves out those that it can't read, so that they hide no other.
type PartialRoster interface {
	Roster

	// Unlisted says which rosters the newest list of all leaves out, and what to do about that; nil if none.
	Unlisted() error
}

// Phase is what a worker is doing, in a Presence. There may be others than these.
type Phase string

// The phases.
const (
	// PhaseCandidate: it contends for the next slot.
	PhaseCandidate Phase = "candidate"
	// PhaseHolder: it holds a lease.
	PhaseHolder Phase = "holder"
	// PhaseStandby: another worker has the slot, which it takes over if that dies.
	PhaseStandby Phase = "standby"
	// PhaseStepping: its code failed in slot after slot, and it lets others go first.
	PhaseStepping Phase = "stepping back"
	// PhaseStopped: it has stopped, and is remembered for its failures.
	PhaseStopped Phase = "stopped"
)

// Presence is what a worker says of itself. Times are of the store's clock, as the worker knows it.
type Presence struct {
	WorkerType string `json:"workerType"`
	// ID identifies a worker, and Client the client that it belongs to: random
	// texts, at most 64 bytes of a-z, 0-9, dots and hyphens.
	ID     string `json:"id"`
	Client string `json:"client,omitzero"`

	InstanceID string `json:"instanceId"`
	Group      string `json:"group,omitzero"`
	Host       string `json:"host,omitzero"`
	PID        int    `json:"pid,omitzero"`
	// Process tells processes with one Host and PID apart, such as replicas in containers: on Linux by the boot, the PID
	// namespace and when it began. At most 64 bytes; empty if a worker doesn't say.
	Process string `json:"process,omitzero"`
	Version string `json:"version,omitzero"`
	// Schedule is the worker's schedule as text, and Work as in Record.
	Schedule string `json:"schedule,omitzero"`
	Work     string `json:"work,omitzero"`
	// Job are the times of the worker's job; nil if it has none, or a version wrote it that didn't say.
	Job *JobTimes `json:"job,omitempty"`
	// Labels are the worker's, such as its region.
	Labels map[string]string `json:"labels,omitempty"`

	// Priority is the worker's own, and Effective the one by which it claims at present, with the reason
	// if they differ.
	Priority  int    `json:"priority"`
	Effective int    `json:"effective"`
	Why       string `json:"why,omitzero"`
	// Spreads says that the worker takes part in priority.Spread.
	Spreads bool `json:"spreads,omitzero"`

	Phase Phase `json:"phase"`
	// Ineligible is why the worker is not fit to lead; empty if it is, or doesn't know.
	Ineligible string `json:"ineligible,omitzero"`
	// Score is the health score, 0 … 1; nil if the worker has none.
	Score *float64 `json:"score,omitempty"`
	// Missed is why the worker did not get the newest slot that it contended for; empty if it did. It
	// is about the slots from MissedFrom to MissedUntil: that one, and those before it that had no holder for the
	// same reason. Both are zero if a version wrote it that didn't say.
	Missed      string    `json:"missed,omitzero"`
	MissedFrom  time.Time `json:"missedFrom,omitzero"`
	MissedUntil time.Time `json:"missedUntil,omitzero"`

	// Failures counts slots in a row in which the worker's code failed or its process died, FailedIn is
	// the start of the newest of them, and StepsBackUntil the start of the first slot for which the worker
	// has its own turn again.
	Failures       int       `json:"failures,omitzero"`
	FailedIn       time.Time `json:"failedIn,omitzero"`
	StepsBackUntil time.Time `json:"stepsBackUntil,omitzero"`

	// Offset is how far the worker's time of day is ahead of store time, which it knows to within
	// Uncertainty. In nanoseconds.
	Offset      time.Duration `json:"offset,omitzero"`
	Uncertainty time.Duration `json:"uncertainty,omitzero"`

	// Since is when the worker began, Seen when it wrote this, and Next when it means to write again.
	Since time.Time `json:"since"`
	Seen  time.Time `json:"seen"`
	Next  time.Time `json:"next"`
}

// JobTimes are when a worker begins and ends the runs of its job. Durations are in nanoseconds, cut to milliseconds.
type JobTimes struct {
	// StartWithin is how late after its start a slot may begin: the shortest one, if that differs. See StartsWithin.
	StartWithin time.Duration `json:"startWithin,omitzero"`
	// StartDefault says that it is the default: a quarter of each slot, at most 1 h.
	StartDefault bool `json:"startDefault,omitzero"`
	// Overrun is what happens to a run at the end of its slot: finish, stop, or another word of a newer version.
	Overrun string `json:"overrun,omitzero"`
	// Timeout is the longest that a run may take; 0: there is no bound.
	Timeout time.Duration `json:"timeout,omitzero"`
	// CatchUp is which missed slots are run late: none, newest, all, or another word; and CatchUpWithin how long after their
	// starts.
	CatchUp       string        `json:"catchUp,omitzero"`
	CatchUpWithin time.Duration `json:"catchUpWithin,omitzero"`
	// MaxAttempts is how often a slot is tried, 0: until it ends; and RetriesOver how long after the first attempt the last
	// one begins at the earliest.
	MaxAttempts int           `json:"maxAttempts,omitzero"`
	RetriesOver time.Duration `json:"retriesOver,omitzero"`
}

const (
	// MaxLabels is the largest number of Labels. Their names have 1 to 63 bytes, their values at most 256.
	MaxLabels = 32
	// MaxReason is the largest Why, Ineligible and Missed, in bytes.
	MaxReason = 1 << 10
	// MaxFailures is the largest Failures.
	MaxFailures = 1_000_000
	// MaxJobTime is the largest duration of JobTimes.
	MaxJobTime = 3660 * 24 * time.Hour

	maxID    = 64
	maxName  = 63
	maxPhase = 32
)

// Check returns nil if p may be written, or else all reasons against it at once. The error wraps ErrInvalid.
func (p *Presence) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := CheckWorkerType(p.WorkerType); err != nil {
		errs = append(errs, err)
	}
	if !IsPresenceID(p.ID) {
		bad("id %.80q: must have 1 … %d of a-z 0-9 . -", p.ID, maxID)
	}
	if p.Client != "" && !IsPresenceID(p.Client) {
		bad("client %.80q: must have at most %d of a-z 0-9 . -", p.Client, maxID)
	}
	if p.InstanceID == "" {
		bad("instanceId: must not be empty")
	}
	if p.Phase == "" {
		bad("phase: must not be empty")
	}
	for _, l := range []struct {
		name, value string
		most        int
	}{
		{"instanceId", p.InstanceID, maxLabel},
		{"group", p.Group, maxLabel},
		{"host", p.Host, maxOrigin},
		{"process", p.Process, maxID},
		{"work", p.Work, MaxWork},
		{"version", p.Version, maxOrigin},
		{"schedule", p.Schedule, maxSchedule},
		{"phase", string(p.Phase), maxPhase},
		{"why", p.Why, MaxReason},
		{"ineligible", p.Ineligible, MaxReason},
		{"missed", p.Missed, MaxReason},
	} {
		errs = append(errs, textFaults(l.name, l.value, l.most)...)
	}
	if len(p.Labels) > MaxLabels {
		bad("labels: there are %d, at most %d allowed", len(p.Labels), MaxLabels)
	} else {
		for _, name := range slices.Sorted(maps.Keys(p.Labels)) {
			errs = append(errs, CheckLabel(name, p.Labels[name]))
		}
	}
	if s := p.Score; s != nil && !(*s >= 0 && *s <= 1) {
		bad("score %v: must be 0 … 1", *s)
	}
	if p.Failures < 0 || p.Failures > MaxFailures {
		bad("failures %d: must be 0 … %d", p.Failures, MaxFailures)
	}
	if j := p.Job; j != nil {
		errs = append(errs, j.faults()...)
	}
	for _, t := range []struct {
		name string
		at   time.Time
	}{{"missedFrom", p.MissedFrom}, {"missedUntil", p.MissedUntil}, {"failedIn", p.FailedIn}, {"stepsBackUntil", p.StepsBackUntil}, {"since", p.Since}, {"seen", p.Seen}, {"next", p.Next}} {
		errs = append(errs, timeFaults(t.name, t.at)...)
	}
	return invalid(slices.DeleteFunc(errs, func(err error) bool { return err == nil }))
}

// StartsWithin is how late after its start a slot of a length may begin; 0: that isn't known.
func (j JobTimes) StartsWithin(length time.Duration) time.Duration {
	if j.StartDefault {
		return min(length/4, time.Hour)
	}
	return min(length, j.StartWithin)
}

// faults are the reasons against the times of a job.
func (j *JobTimes) faults() (errs []error) {
	errs = slices.Concat(textFaults("job.overrun", j.Overrun, maxPhase), textFaults("job.catchUp", j.CatchUp, maxPhase))
	for _, d := range []time.Duration{j.StartWithin, j.Timeout, j.CatchUpWithin, j.RetriesOver} {
		if d < 0 || d > MaxJobTime {
			errs = append(errs, fmt.Errorf("job: %v: durations must be 0 … %v", d, MaxJobTime))
		}
	}
	if j.MaxAttempts < 0 || j.MaxAttempts > MaxAttempt {
		errs = append(errs, fmt.Errorf("job: %d attempts: must be 0 … %d", j.MaxAttempts, MaxAttempt))
	}
	return errs
}

// IsPresenceID reports that an ID, or a Client, may be one of a Presence: it has 1 to 64 bytes, of a-z, 0-9, dots and hyphens.
func IsPresenceID(id string) bool {
	other := func(c rune) bool { return ('a' > c || c > 'z') && ('0' > c || c > '9') && c != '.' && c != '-' }
	return id != "" && len(id) <= maxID && strings.IndexFunc(id, other) < 0
}

// CheckLabel returns nil if a label may be one of a Presence. The error wraps ErrInvalid.
func CheckLabel(name, value string) error {
	faults := slices.Concat(textFaults(fmt.Sprintf("label %.70q", name), name, maxName), textFaults(fmt.Sprintf("label %.70q", name), value, maxLabel))
	if name == "" {
		faults = append(faults, fmt.Errorf("label %q: its name is empty", "="+value))
	}
	return invalid(faults)
}

// Truncated returns p as a store keeps it: times in UTC, cut to milliseconds, as the durations of its job are.
func (p Presence) Truncated() Presence {
	for _, t := range []*time.Time{&p.MissedFrom, &p.MissedUntil, &p.FailedIn, &p.StepsBackUntil, &p.Since, &p.Seen, &p.Next} {
		*t = truncated(*t)
	}
	if p.Job != nil {
		j := *p.Job
		for _, d := range []*time.Duration{&j.StartWithin, &j.Timeout, &j.CatchUpWithin} {
			*d = d.Truncate(time.Millisecond)
		}
		p.Job = &j
	}
	return p
}

// ComparePresences orders presences by their keys.
func ComparePresences(a, b Presence) int {
	return cmp.Or(strings.Compare(a.WorkerType, b.WorkerType), strings.Compare(a.ID, b.ID))
}
