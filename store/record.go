package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind says what a record does.
type Kind string

// The kinds that this version writes. Records of other kinds are valid: readers
// obey their envelope.
const (
	// KindGrant gives its holder the window.
	KindGrant Kind = "grant"
	// KindRelease ends the term of the head at its (zero-length) window.
	KindRelease Kind = "release"
	// KindReset supersedes a head that can't be obeyed; Metadata says why.
	KindReset Kind = "reset"
	// KindOverride ends whatever is in force below it, at its (zero-length) window. Only
	// operators write it, never a worker. Its Claim is new, and its Token is above those of
	// all records below it that can be obeyed; Metadata says why.
	KindOverride Kind = "override"
	// KindDone says that the work of a slot is done: DoneUntil names the slot. It
	// changes no term: its window is empty and lies at the end of the head's window.
	KindDone Kind = "done"
	// KindOutcome says what came of the work of a slot that isn't done, where no other record
	// says so: see Record.Outcome. Like KindDone it changes no term.
	KindOutcome Kind = "outcome"
	// KindOrder is the order of an operator, or the end of one: Metadata has it, and Orders all
	// that are in force with it. It changes no term, like KindDone. Only operators write it.
	KindOrder Kind = "order"
	// KindSighting says since when (its empty window) a record can't be obeyed, or rather was
	// seen not to be: Token is its Seq, Claim a digest of it, and Metadata says why. It stands
	// under the worker type Sightings, and its Seq follows from what it is of.
	KindSighting Kind = "sighting"
)

// Sightings is a worker type that workers can't have. Under it they record since when the
// ledger of a type can't be obeyed, so that this is known to those that start later.
const Sightings = "slotlease.sightings"

const (
	// MaxSeq is the largest valid Seq; larger ones are unreachable records. It
	// keeps Seq exact in stores whose numbers are IEEE doubles.
	MaxSeq = 1<<53 - 2
	// MaxMetadata is the largest Metadata, in bytes.
	MaxMetadata = 8 << 10
	// MaxWork is the largest Work, in bytes.
	MaxWork = 128
	// MaxAttempt is the largest Attempt.
	MaxAttempt = 1_000_000
	// maxLabel bounds InstanceID and Group, maxSchedule the schedule's text, and
	// maxOrigin Host and Version when they are read.
	maxLabel    = 256
	maxSchedule = 512
	maxOrigin   = 1 << 10
)

// Record is one write-once entry of a ledger. Readers obey a record by its envelope
// alone: WorkerType, Seq, Kind, Claim, InstanceID, Group, Token, WindowStart,
// WindowEnd and ReadAt. The envelope never changes its meaning between versions.
// The other fields are for information. All times are in the years 1 to 9999, or zero.
type Record struct {
	WorkerType string
	Seq        int64
	Kind       Kind

	// InstanceID labels the worker that wrote the record.
	InstanceID string
	// Group is shared by workers that hold leases together; empty for none.
	Group string
	// Claim is the random id (128 bits, hex) of the claim that began the term.
	Claim    string
	Priority int

	// SlotStart and SlotEnd are the slot of the schedule that was claimed.
	SlotStart, SlotEnd time.Time
	// WindowStart and WindowEnd are the half-open window of store time that the
	// record grants; equal for records that grant nothing.
	WindowStart, WindowEnd time.Time
	// Token is the fencing token. It grows strictly from term to term.
	Token int64
	// Schedule is the writer's schedule as text.
	Schedule string
	// FixedAt is the store time at which the claim was fixed: the earliest by the
	// writer's estimate.
	FixedAt time.Time
	// ReadAt is the latest store time at which the writer can have read the head
	// that it appended to. Zero is valid and allows no trimming.
	ReadAt time.Time

	// DoneUntil is, for jobs that run once per slot, the latest end of a slot whose work is
	// done for good; zero if there is none. Every record repeats it, so the head alone shows
	// it and trimming can't lose it. It is for information: an invalid value is dropped, the
	// record stays valid.
	DoneUntil time.Time
	// Done is the newest slot whose work is done, as Done.String writes it: with it, slots of
	// another schedule that start later are not done, although they may end before DoneUntil.
	// It is empty if it isn't known, as in records of earlier versions. Every record repeats
	// it. It is for information, like DoneUntil.
	Done string
	// Attempt is, in the grant of a job that runs once per slot, the number of times
	// that its slot was begun, including this one; other records repeat it. It is 1
	// to MaxAttempt, or 0 if it isn't counted. It is for information, like DoneUntil.
	Attempt int
	// Spared is how many of these count for nothing, since their worker was stopped, or an
	// operator ended them: 0 to Attempt. It is for information, like DoneUntil.
	Spared int

	// Orders are the orders of operators that are in force, as FormatOrders writes them; empty
	// for none. Every record repeats them until they end, so the head alone shows them. It is
	// for information, like DoneUntil: what can't be read is dropped, and gives no right.
	Orders string

	Worker Worker
	// Work names what the writer does, so that two jobs under one worker type are noticed: at most 128 bytes, empty if it doesn't
	// say. It is for information, like DoneUntil.
	Work string
	// Metadata is free text of at most MaxMetadata bytes. In records of the kinds done, release
	// and outcome it is an Outcome, or empty; in those of the kind outcome also a Lost.
	Metadata string

	// Defect is not stored. It is why the store couldn't decode a document. Only
	// WorkerType and Seq are then reliable.
	Defect string
}

// Worker is the process that wrote a record.
type Worker struct {
	Host    string
	PID     int
	Version string
}

// CheckEnvelope returns nil if a reader can obey r, or else all reasons against it
// at once: a Defect, or faults of the envelope. It ignores the fields that are for
// information, where a later version may write more than this one. It knows no
// time: a window in the far future passes. The error wraps ErrInvalid.
func (r Record) CheckEnvelope() error { return invalid(r.envelopeFaults()) }

// Check returns nil if r may be written, or else all reasons against it at once:
// those of CheckEnvelope, a Schedule, Work or Metadata that is too long, contains NUL, or
// isn't UTF-8, an Attempt that is negative or above MaxAttempt, a Spared that is negative or above Attempt, Orders that ParseOrders refuses, a Done that ParseDone refuses,
// and slot times, a FixedAt or a DoneUntil outside the years 1 to 9999. The error wraps ErrInvalid. Readers use
// CheckEnvelope instead, because a lease must be obeyed whatever information comes with it.
func (r Record) Check() error {
	faults := r.envelopeFaults()
	if r.Defect == "" {
		faults = slices.Concat(faults, textFaults("schedule", r.Schedule, maxSchedule), textFaults("work", r.Work, MaxWork), textFaults("metadata", r.Metadata, MaxMetadata))
		if r.Attempt < 0 || r.Attempt > MaxAttempt {
			faults = append(faults, fmt.Errorf("attempt %d: must be 0 … %d", r.Attempt, MaxAttempt))
		}
		if r.Spared < 0 || r.Spared > r.Attempt {
			faults = append(faults, fmt.Errorf("spared %d: must be 0 … attempt, which is %d", r.Spared, r.Attempt))
		}
		_, unread := parseOrders(r.Orders)
		faults = append(faults, unread...)
		if _, err := parseDone(r.Done); err != nil {
			faults = append(faults, fmt.Errorf("done: %w", err))
		}
		for _, t := range []struct {
			name string
			at   time.Time
		}{{"slotStart", r.SlotStart}, {"slotEnd", r.SlotEnd}, {"fixedAt", r.FixedAt}, {"doneUntil", r.DoneUntil}} {
			faults = append(faults, timeFaults(t.name, t.at)...)
		}
	}
	return invalid(faults)
}

// Cleaned returns r as a store gives it to readers: the envelope unchanged, and
// invalid information removed. It empties a Schedule, Work, Metadata, Attempt, Spared, Orders or Done that
// Check refuses, a Host or Version that has more than 1 KiB or isn't UTF-8, and
// slot times, FixedAt and DoneUntil outside the years 1 to 9999. This bounds the
// memory that a foreign record takes.
func (r Record) Cleaned() Record {
	for _, t := range []struct {
		text *string
		most int
	}{{&r.Schedule, maxSchedule}, {&r.Work, MaxWork}, {&r.Metadata, MaxMetadata}} {
		if textFaults("", *t.text, t.most) != nil {
			*t.text = ""
		}
	}
	for _, text := range []*string{&r.Worker.Host, &r.Worker.Version} {
		if len(*text) > maxOrigin || !utf8.ValidString(*text) {
			*text = ""
		}
	}
	for _, t := range []*time.Time{&r.SlotStart, &r.SlotEnd, &r.FixedAt, &r.DoneUntil} {
		if timeFaults("", *t) != nil {
			*t = time.Time{}
		}
	}
	if r.Attempt < 0 || r.Attempt > MaxAttempt {
		r.Attempt = 0
	}
	if r.Spared < 0 || r.Spared > r.Attempt {
		r.Spared = 0
	}
	if _, err := ParseOrders(r.Orders); err != nil {
		r.Orders = ""
	}
	if _, err := parseDone(r.Done); err != nil {
		r.Done = ""
	}
	return r
}

func invalid(faults []error) error {
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalid, errors.Join(faults...))
}

// envelopeFaults takes a pointer, and no copy of its own: workers check records deep down their stacks,
// which many workers at once must not grow.
func (r *Record) envelopeFaults() []error {
	if r.Defect != "" {
		return []error{errors.New(r.Defect)}
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := CheckWorkerType(r.WorkerType); err != nil {
		errs = append(errs, err)
	}
	if r.Seq < 1 || r.Seq > MaxSeq {
		bad("seq %d: must be 1 … %d", r.Seq, int64(MaxSeq))
	}
	if r.Kind == "" || len(r.Kind) > 32 {
		bad("kind %.40q: must have 1 … 32 bytes", string(r.Kind))
	}
	if r.Claim == "" || len(r.Claim) > 64 {
		bad("claim %.80q: must have 1 … 64 bytes", r.Claim)
	}
	if r.InstanceID == "" {
		bad("instanceId: must not be empty")
	}
	for _, l := range []struct{ name, value string }{
		{"kind", string(r.Kind)}, {"claim", r.Claim}, {"instanceId", r.InstanceID}, {"group", r.Group},
	} {
		errs = append(errs, textFaults(l.name, l.value, maxLabel)...)
	}
	if r.Token < 1 {
		bad("token %d: must be positive", r.Token)
	}
	unfit := slices.Concat(timeFaults("windowStart", r.WindowStart), timeFaults("windowEnd", r.WindowEnd))
	errs = slices.Concat(errs, unfit, timeFaults("readAt", r.ReadAt))
	if len(unfit) > 0 {
		return errs
	}
	// The window must be one as it is stored, too.
	switch start, end := truncated(r.WindowStart), truncated(r.WindowEnd); {
	case start.IsZero() || end.IsZero():
		bad("window: must have a start and an end")
	case end.Before(start):
		bad("window %s … %s: ends before it starts", Format(start), Format(end))
	case r.Kind == KindGrant && !start.Before(end):
		bad("window %s: a grant must not be empty", Format(start))
	}
	return errs
}

// timeFaults are the faults of a time, which may be zero. Not all stores have a form for other
// years, and neither has RFC 3339.
func timeFaults(name string, t time.Time) []error {
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return []error{fmt.Errorf("%s %s: must be in the years 1 to 9999", name, Format(t))}
	}
	return nil
}

// textFaults are the faults of a text that may have at most most bytes.
func textFaults(name, value string, most int) (faults []error) {
	if len(value) > most {
		faults = append(faults, fmt.Errorf("%s: %d bytes, at most %d allowed", name, len(value), most))
	}
	if i := strings.IndexByte(value, 0); i >= 0 {
		faults = append(faults, fmt.Errorf("%s: NUL at byte %d", name, i))
	}
	// Stores that keep JSON would replace it, and a Claim must come back as it is.
	if !utf8.ValidString(value) {
		faults = append(faults, fmt.Errorf("%s: must be UTF-8", name))
	}
	return faults
}

// Truncated returns r as a store keeps it: times in UTC, cut to milliseconds.
func (r Record) Truncated() Record {
	for _, t := range []*time.Time{&r.SlotStart, &r.SlotEnd, &r.WindowStart, &r.WindowEnd, &r.FixedAt, &r.ReadAt, &r.DoneUntil} {
		*t = truncated(*t)
	}
	return r
}

func truncated(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return FromMillis(t.UnixMilli())
}

// FromMillis converts a Unix time in ms to a time in UTC.
func FromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// Format formats a store time as it is shown everywhere: RFC 3339, UTC, ms.
func Format(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Key is the document id of a record, in stores that have ids: the worker type, a
// colon, and the Seq in 20 digits, so that keys sort by Seq.
func Key(workerType string, seq int64) string { return fmt.Sprintf("%s:%020d", workerType, seq) }

// WorkerTypeError is why a worker type is invalid. errors.Is(e, ErrInvalid) holds.
type WorkerTypeError struct {
	WorkerType string
	// Rule is the problem, such as the offending character, and what to use instead.
	Rule string
}

// Error is one line: the worker type and the rule.
func (e *WorkerTypeError) Error() string {
	if e.WorkerType == "" {
		return fmt.Sprintf("%v: worker type is empty: %s", ErrInvalid, e.Rule)
	}
	return fmt.Sprintf("%v: worker type %.70q: %s", ErrInvalid, e.WorkerType, e.Rule)
}

// Is reports that a WorkerTypeError is an ErrInvalid.
func (e *WorkerTypeError) Is(target error) bool { return target == ErrInvalid }

// CheckWorkerType returns nil for a valid worker type: 1 to 63 characters of
// A-Z a-z 0-9 . _ - of which the first is a letter or a digit. Otherwise it returns a
// [WorkerTypeError].
func CheckWorkerType(t string) error {
	const rule = "use 1 to 63 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
	if t == "" {
		return &WorkerTypeError{t, rule}
	}
	for i, c := range t {
		letter := 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '_' && c != '-') {
			return &WorkerTypeError{t, fmt.Sprintf("character %q at position %d: %s", c, i+1, rule)}
		}
	}
	if len(t) > 63 {
		return &WorkerTypeError{t, fmt.Sprintf("%d bytes: %s", len(t), rule)}
	}
	return nil
}
