package store

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"
)

// Result is what came of the work of a slot.
type Result string

// The results.
const (
	// Succeeded: the work was done.
	Succeeded Result = "succeeded"
	// Failed: the code returned an error, panicked, exited with a code other than 0, or showed
	// no progress.
	Failed Result = "failed"
)

// Cause is why an attempt failed that did not end by itself.
type Cause string

// The causes. The text is what people read.
const (
	// TimedOut: it took longer than the job may.
	TimedOut Cause = "timed out"
	// SlotEnded: it was cut at the end of its slot.
	SlotEnded Cause = "cut at the end of its slot"
	// LeaseLost: its lease ended early, as by an outage of the store or a jump of the clock.
	LeaseLost Cause = "lease lost"
	// Ordered: an operator ended it.
	Ordered Cause = "ended by an operator"
	// Stopped: its worker was stopped.
	Stopped Cause = "worker stopped"
	// WorkerDied: its worker has gone without a word.
	WorkerDied Cause = "worker died"
)

// Spared reports that a stop or an operator's order ended the attempt: it is nobody's failure, and doesn't count against MaxAttempts.
func (c Cause) Spared() bool { return c == Stopped || c == Ordered }

// MaxError is the largest Error of an Outcome, in bytes.
const MaxError = 1 << 10

// MaxOutput is the largest Output of an Outcome, in bytes.
const MaxOutput = 16 << 10

// Outcome is what came of the work of a slot, as the worker that did it says. It is for
// information: workers take from it only that a stop or an order ended an attempt (see Record.Spared). Records carry it as JSON in their Metadata, whose
// fields are
//
//	result      "succeeded" or "failed"
//	cause       why the attempt failed, if it did not end by itself: see Cause
//	givenUp     true after the last attempt that the job allows
//	exitCode    of the command, if it exited
//	error       the beginning of the error's text, at most 1 KiB
//	output      the end of what the work wrote, compressed: see Outcome.Output
//	instanceId  the worker
//	attempt     as in Record.Attempt
//	slotStart, slotEnd, begun, ended
//	            times in RFC 3339, UTC, with milliseconds
//
// All but result, slotStart and slotEnd may be absent. Readers ignore fields they don't know.
type Outcome struct {
	Result Result
	// Cause is why the attempt failed, if it did not end by itself; of any version's.
	Cause Cause
	// GivenUp says that the slot failed for good: this was the last of Job.MaxAttempts.
	GivenUp bool
	// ExitCode is the exit code of a command. It means nothing unless Exited is set.
	ExitCode int
	Exited   bool
	// Error is the beginning of the error's text: valid UTF-8 without NUL, at most MaxError
	// bytes. Any program may have written it; it may have several lines and control characters.
	Error string
	// Output is the end of what the work wrote, if its worker keeps that: valid UTF-8 without NUL, at most MaxOutput bytes,
	// and any control characters. Metadata keeps as much of the end as fits, by whole lines, and puts a line with … in place
	// of the rest. It is stored as base64 of DEFLATE (RFC 1951).
	Output string
	// InstanceID labels the worker that did the work. In a record that changes no term it differs
	// from Record.InstanceID if another worker has the term in force.
	InstanceID string
	// Attempt is which attempt at the slot this was, from 1; 0 if attempts aren't counted.
	Attempt int
	// SlotStart and SlotEnd are the slot whose work it was.
	SlotStart, SlotEnd time.Time
	// Begun and Ended are when the work began and ended: store time, by the middle of what the
	// worker knew of it. Zero if it isn't known.
	Begun, Ended time.Time
}

// outcomeJSON is how an Outcome is stored.
type outcomeJSON struct {
	Result     Result `json:"result"`
	Cause      Cause  `json:"cause,omitzero"`
	GivenUp    bool   `json:"givenUp,omitzero"`
	ExitCode   *int   `json:"exitCode,omitempty"`
	Error      string `json:"error,omitzero"`
	Output     string `json:"output,omitzero"`
	InstanceID string `json:"instanceId,omitzero"`
	Attempt    int    `json:"attempt,omitzero"`
	SlotStart  string `json:"slotStart"`
	SlotEnd    string `json:"slotEnd"`
	Begun      string `json:"begun,omitzero"`
	Ended      string `json:"ended,omitzero"`
}

// Outcome is what a record says of the work of a slot. It reports false for a record of a kind
// other than KindDone, KindRelease and KindOutcome, and for one whose Metadata isn't a valid
// outcome. Times are in UTC, cut to milliseconds.
func (r Record) Outcome() (Outcome, bool) {
	switch {
	case r.Defect != "" || r.Metadata == "":
		return Outcome{}, false
	case r.Kind != KindDone && r.Kind != KindRelease && r.Kind != KindOutcome:
		return Outcome{}, false
	}
	var in outcomeJSON
	if json.Unmarshal([]byte(r.Metadata), &in) != nil {
		return Outcome{}, false
	}
	o := Outcome{Result: in.Result, Cause: Cause(shortened(string(in.Cause), maxLabel)), GivenUp: in.GivenUp, Error: shortened(in.Error, MaxError), Output: unpacked(in.Output), InstanceID: in.InstanceID, Attempt: in.Attempt}
	if in.ExitCode != nil {
		o.ExitCode, o.Exited = *in.ExitCode, true
	}
	for _, t := range []struct {
		text string
		at   *time.Time
	}{{in.SlotStart, &o.SlotStart}, {in.SlotEnd, &o.SlotEnd}, {in.Begun, &o.Begun}, {in.Ended, &o.Ended}} {
		if t.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, t.text)
		if err != nil || timeFaults("", at) != nil {
			return Outcome{}, false
		}
		*t.at = truncated(at)
	}
	return o, o.valid()
}

// Metadata is the outcome as the Metadata of a record: compact JSON, valid for any Error, of at
// most MaxMetadata bytes. It is "" for an outcome that isn't valid: without a Result or a slot, with a
// label that is too long, an Attempt that Record.Check refuses, a time outside the years 1 to 9999, or
// given up although it succeeded.
func (o Outcome) Metadata() string {
	if !o.valid() {
		return ""
	}
	out := outcomeJSON{
		Result: o.Result, Cause: Cause(shortened(string(o.Cause), maxLabel)), GivenUp: o.GivenUp, Error: shortened(o.Error, MaxError), InstanceID: o.InstanceID, Attempt: o.Attempt,
		SlotStart: Format(o.SlotStart), SlotEnd: Format(o.SlotEnd),
	}
	if o.Exited {
		out.ExitCode = &o.ExitCode
	}
	if !o.Begun.IsZero() {
		out.Begun = Format(o.Begun)
	}
	if !o.Ended.IsZero() {
		out.Ended = Format(o.Ended)
	}
	text := out.text()
	if o.Output != "" {
		out.Output = packed(shortenedFront(o.Output, MaxOutput), MaxMetadata-len(text)-len(`"output":"",`))
		text = out.text()
	}
	return text
}

// text is the JSON, or empty.
func (out outcomeJSON) text() string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // It would make three more bytes of each < and >.
	if e.Encode(out) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Took is how long the work took, and whether that is known.
func (o Outcome) Took() (time.Duration, bool) {
	d := o.Ended.Sub(o.Begun)
	return max(d, 0), !o.Begun.IsZero() && !o.Ended.IsZero() && d >= 0
}

func (o Outcome) valid() bool {
	for _, t := range []time.Time{o.SlotStart, o.SlotEnd, o.Begun, o.Ended} {
		if timeFaults("", t) != nil {
			return false
		}
	}
	switch {
	case o.Result != Failed && (o.Result != Succeeded || o.GivenUp):
		return false
	case o.Attempt < 0 || o.Attempt > MaxAttempt || textFaults("", o.InstanceID, maxLabel) != nil:
		return false
	}
	start, end := truncated(o.SlotStart), truncated(o.SlotEnd)
	return !start.IsZero() && start.Before(end)
}

// shortened is the beginning of a text, of at most most bytes: whole runes of UTF-8, and no NUL.
func shortened(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
