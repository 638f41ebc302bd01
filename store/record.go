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
	// KindRelease ends the tenure of the head at its (zero-length) window.
	KindRelease Kind = "release"
	// KindReset supersedes a head that can't be obeyed; Metadata says why.
	KindReset Kind = "reset"
	// KindDone tells that the work of a slot is done: DoneUntil says which. It
	// changes no tenure: its window is empty and stands at the end of the head's.
	KindDone Kind = "done"
)

const (
	// MaxSeq is the largest Seq that is followed. It keeps Seq exact in stores
	// whose numbers are IEEE doubles.
	MaxSeq = 1<<53 - 2
	// MaxMetadata is the largest Metadata, in bytes.
	MaxMetadata = 8 << 10
	// MaxAttempt is the largest Attempt.
	MaxAttempt = 1_000_000
	// maxLabel bounds InstanceID and Group, maxSchedule the schedule's text, and
	// maxOrigin what is read of Host and Version.
	maxLabel    = 256
	maxSchedule = 512
	maxOrigin   = 1 << 10
)

// Record is one write-once entry of a ledger. Its envelope (WorkerType, Seq,
// Kind, Claim, InstanceID, Group, Token, WindowStart, WindowEnd, ReadAt) never
// changes its meaning between versions, and readers obey a record by it alone;
// the rest is for information.
type Record struct {
	WorkerType string
	Seq        int64
	Kind       Kind

	// InstanceID labels the worker that wrote the record.
	InstanceID string
	// Group is shared by workers that hold leases together; empty for none.
	Group string
	// Claim is the random id (128 bits, hex) of the claim that began the tenure.
	Claim    string
	Priority int

	// SlotStart and SlotEnd are the slot of the schedule that was claimed.
	SlotStart, SlotEnd time.Time
	// WindowStart and WindowEnd are the half-open window of store time that the
	// record grants; equal for records that grant nothing.
	WindowStart, WindowEnd time.Time
	// Token is the fencing token. It grows strictly from tenure to tenure.
	Token int64
	// Schedule is the writer's schedule as text.
	Schedule string
	// FixedAt is when the claim was fixed, at the earliest by the writer's
	// estimate of store time.
	FixedAt time.Time
	// ReadAt is the latest store time at which the writer can have read the head
	// that it appended to. Zero is valid and justifies no trimming.
	ReadAt time.Time

	// DoneUntil is the end of the newest slot whose work is done for good, of jobs
	// that are run once per slot; zero: none. Every record repeats it, so that the
	// head alone tells it, and trimming can't lose it. It is for information: a
	// value that is unfit costs the value, not the record.
	DoneUntil time.Time
	// Attempt is, in a grant of a job that is run once per slot, how many times its
	// slot has been begun, this time included; other records repeat it. From 1 to
	// MaxAttempt; 0: not counted. It is for information, like DoneUntil.
	Attempt int

	Worker Worker
	// Metadata is free text of at most MaxMetadata bytes.
	Metadata string

	// Defect is not stored. A store sets it on what it returns for a document
	// that it can't decode: why. Only WorkerType and Seq are then reliable.
	Defect string
}

// Worker says where a record was written.
type Worker struct {
	Host    string
	PID     int
	Version string
}

// CheckEnvelope says what keeps a reader from obeying r, all at once, or nil: a
// Defect, or a fault of the envelope. It doesn't look at what is for information
// only, where a later version may write more than this one. The error wraps
// ErrInvalid. It knows no time: a window in the far future passes.
func (r Record) CheckEnvelope() error { return invalid(r.envelopeFaults()) }

// Check says why r may not be written, all at once, or nil: what CheckEnvelope
// says, Schedule or Metadata that is too long, holds NUL, or isn't UTF-8, and an
// Attempt that is negative or above MaxAttempt. The error wraps ErrInvalid.
// Readers use CheckEnvelope: a lease must be obeyed whatever the information
// beside it is.
func (r Record) Check() error {
	faults := r.envelopeFaults()
	if r.Defect == "" {
		faults = slices.Concat(faults, textFaults("schedule", r.Schedule, maxSchedule), textFaults("metadata", r.Metadata, MaxMetadata))
		if r.Attempt < 0 || r.Attempt > MaxAttempt {
			faults = append(faults, fmt.Errorf("attempt %d: must be 0 … %d", r.Attempt, MaxAttempt))
		}
	}
	return invalid(faults)
}

// Cleaned returns r as a store gives it to readers: without information that is
// unfit, and with the envelope untouched. It empties a Schedule, a Metadata or
// an Attempt that Check refuses, a Host or a Version of more than 1 KiB or that
// isn't UTF-8, and slot times, a FixedAt and a DoneUntil outside the years 1 to
// 9999. So it bounds the memory that the information of a foreign record takes.
func (r Record) Cleaned() Record {
	for _, t := range []struct {
		text *string
		most int
	}{{&r.Schedule, maxSchedule}, {&r.Metadata, MaxMetadata}} {
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
		if year := t.UTC().Year(); year < 1 || year > 9999 {
			*t = time.Time{}
		}
	}
	if r.Attempt < 0 || r.Attempt > MaxAttempt {
		r.Attempt = 0
	}
	return r
}

func invalid(faults []error) error {
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalid, errors.Join(faults...))
}

func (r Record) envelopeFaults() []error {
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
	switch {
	case r.WindowStart.IsZero() || r.WindowEnd.IsZero():
		bad("window: must have a start and an end")
	case r.WindowEnd.Before(r.WindowStart):
		bad("window %s … %s: ends before it starts", Format(r.WindowStart), Format(r.WindowEnd))
	case r.Kind == KindGrant && !r.WindowStart.Before(r.WindowEnd):
		bad("window %s: a grant must not be empty", Format(r.WindowStart))
	}
	return errs
}

// textFaults are those of a text that may have so many bytes.
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
		if t.IsZero() {
			*t = time.Time{}
		} else {
			*t = FromMillis(t.UnixMilli())
		}
	}
	return r
}

// FromMillis is the time of a Unix time in ms, in UTC.
func FromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// Format writes a store time the way it is shown everywhere: RFC 3339, UTC, ms.
func Format(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Key is the document id of a record in stores that have one: the worker type,
// a colon, and the Seq in 20 digits, so that the order of keys is that of Seq.
func Key(workerType string, seq int64) string { return fmt.Sprintf("%s:%020d", workerType, seq) }

// CheckWorkerType says what is wrong with a worker type, naming the offending
// character, or nil. Valid are 1 to 63 of A-Z a-z 0-9 . _ - and the first must
// be a letter or a digit. The error wraps ErrInvalid.
func CheckWorkerType(t string) error {
	const rule = "use 1 to 63 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
	if t == "" {
		return fmt.Errorf("%w: worker type is empty: %s", ErrInvalid, rule)
	}
	for i, c := range t {
		letter := 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '_' && c != '-') {
			return fmt.Errorf("%w: worker type %.70q: character %q at byte %d: %s", ErrInvalid, t, c, i, rule)
		}
	}
	if len(t) > 63 {
		return fmt.Errorf("%w: worker type %.70q…: %d bytes: %s", ErrInvalid, t, len(t), rule)
	}
	return nil
}
