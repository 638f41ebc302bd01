package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Facts are what a target is told. As JSON they are the body of a POST, whose times are RFC 3339 in UTC.
type Facts struct {
	Event Event `json:"event"`
	// ID is a UUID. What several workers tell of the same attempt, or of the same missed slots, has the same.
	ID string `json:"id"`
	// Text is all of it in a sentence.
	Text       string `json:"text"`
	WorkerType string `json:"workerType"`
	InstanceID string `json:"instanceId"`
	Group      string `json:"group,omitzero"`
	SlotStart  string `json:"slotStart"`
	SlotEnd    string `json:"slotEnd"`
	Token      int64  `json:"token,omitzero"`
	Attempt    int    `json:"attempt,omitzero"`
	ExitCode   *int   `json:"exitCode,omitempty"`
	TookMs     *int64 `json:"tookMs,omitempty"`
	Reason     string `json:"reason,omitzero"`
	// Missed is how many slots were missed; SlotEnd is that of the last.
	Missed int    `json:"missed,omitzero"`
	Output string `json:"output,omitzero"`

	ran    bool // a run of this worker's has ended
	serial int64
}

// of are the facts of an event: none of most.
func of(e event.Event) []Facts {
	switch e := e.(type) {
	case event.TaskSucceeded:
		f, done := ofRun(Success, e.Lease, nil), 0
		f.ExitCode = &done
		if e.Took > 0 {
			f.TookMs = millis(e.Took)
		}
		return []Facts{f}
	case event.Faltered:
		return []Facts{ofRun(Failure, e.Lease, e.Err)}
	case event.TaskFailed:
		if e.Cause.Spared() {
			return nil // A deployment, or an order, is as somebody wants it.
		}
		f := ofRun(Failure, e.Lease, e.Err)
		f.Reason = cmp.Or(string(e.Cause), f.Reason)
		return f.andGivenUp(e.GivenUp)
	case event.WorkerDied:
		f := about(Failure, e.Worker, e.Slot)
		f.Attempt, f.Reason = e.Attempt, fmt.Sprintf("%s: %q ended without a word", store.WorkerDied, e.Holder)
		return f.andGivenUp(e.GivenUp)
	case event.Missed:
		f := about(Missed, e.Worker, slots.Slot{Start: e.Slot.Start, End: e.Until})
		f.Missed, f.Reason = e.Count, string(e.Why)
		if e.Why != workerlease.Paused { // A pause is as an operator wants it.
			return []Facts{f}
		}
	}
	return nil
}

// andGivenUp are facts and, of a last attempt, the same as those of a slot that is given up.
func (f Facts) andGivenUp(last bool) []Facts {
	if !last {
		return []Facts{f}
	}
	g := f
	g.Event = GivenUp
	return []Facts{f, g}
}

func about(what Event, w event.Worker, s slots.Slot) Facts {
	return Facts{Event: what, WorkerType: w.WorkerType, InstanceID: w.InstanceID, SlotStart: store.Format(s.Start), SlotEnd: store.Format(s.End)}
}

// ofRun are the facts of a run, with what its error says of it.
func ofRun(what Event, l event.Lease, err error) Facts {
	f := about(what, event.Worker{WorkerType: l.WorkerType, InstanceID: l.InstanceID}, l.Slot)
	f.Group, f.Token, f.Attempt, f.ran = l.Group, l.Token, l.Attempt, true
	if err == nil {
		return f
	}
	f.Reason = err.Error()
	if code, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		n := code.ExitCode()
		f.ExitCode = &n
	}
	if timed, ok := errors.AsType[interface {
		error
		Took() time.Duration
	}](err); ok {
		f.TookMs = millis(timed.Took())
	}
	return f
}

func millis(d time.Duration) *int64 {
	ms := d.Milliseconds()
	return &ms
}

// complete fills in what follows from the rest, and makes every text fit to be shown.
func (f Facts) complete() Facts {
	f.Reason, f.Output = display.Line(f.Reason), display.Text(f.Output)
	number := fmt.Sprint("attempt ", f.Attempt)
	switch {
	case f.Event == Missed:
		number = ""
	case f.Attempt == 0: // Runs of one lease have nothing else to tell them apart.
		number = fmt.Sprint("run ", f.InstanceID, " ", f.Token, " ", f.serial)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s %s %q", f.WorkerType, f.Event, f.SlotStart, number))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8
	id := hex.EncodeToString(sum[:16])
	f.ID = strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
	f.Text = f.sentence()
	return f
}

func (f Facts) sentence() string {
	text := fmt.Sprintf("%s: slot %s: %s", f.WorkerType, f.SlotStart, map[Event]string{Failure: "failed", Missed: "missed", Success: "succeeded", GivenUp: "given up"}[f.Event])
	switch {
	case f.Missed > 1:
		text = fmt.Sprintf("%s: %d slots from %s to %s missed", f.WorkerType, f.Missed, f.SlotStart, f.SlotEnd)
	case f.Attempt > 0:
		text += fmt.Sprint(", attempt ", f.Attempt)
	}
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return display.Line(fmt.Sprintf("%s (told by %s)", text, f.InstanceID))
}

// body is the JSON of the facts.
func (f Facts) body() ([]byte, error) {
	b, err := json.Marshal(f)
	return display.EscapeJSON(b), err
}

// values are the facts as texts, by their names in JSON. Those that don't apply are empty.
func (f Facts) values() map[string]string {
	values, fields := map[string]string{}, reflect.ValueOf(f)
	for field, v := range fields.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			values[name] = ""
			if !v.IsZero() {
				values[name] = fmt.Sprint(reflect.Indirect(v))
			}
		}
	}
	return values
}

var capital = regexp.MustCompile(`[A-Z]`)

// variable is the name of a fact in the environment of a command, such as LEASE_EXIT_CODE.
func variable(name string) string {
	if name == "id" {
		name = "eventId"
	}
	return "LEASE_" + strings.ToUpper(capital.ReplaceAllString(name, "_$0"))
}

// environ is an environment with the facts in place of what it had by their names.
func (f Facts) environ(env []string) []string {
	facts := map[string]string{}
	for name, text := range f.values() {
		facts[variable(name)] = text
	}
	return guard.Environ(env, facts)
}
