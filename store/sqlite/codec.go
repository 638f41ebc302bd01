package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
)

// columns of WorkerLeases in the order of encode and decode. All except the key are
// nullable, so that a row from another program can be read and reported. The columns
// of a later schema are at the end, where an upgrade adds them.
var columns = []struct {
	name, kind string
}{
	{"workerType", "TEXT NOT NULL"},
	{"seq", "INTEGER NOT NULL"},
	{"kind", "TEXT"},
	{"instanceId", "TEXT"},
	{"group", "TEXT"},
	{"claim", "TEXT"},
	{"priority", "INTEGER"},
	{"slotStart", "INTEGER"},
	{"slotEnd", "INTEGER"},
	{"windowStart", "INTEGER"},
	{"windowEnd", "INTEGER"},
	{"token", "INTEGER"},
	{"schedule", "TEXT"},
	{"fixedAt", "INTEGER"},
	{"readAt", "INTEGER"},
	{"worker", "TEXT"},
	{"metadata", "TEXT"},
	{"doneUntil", "INTEGER"},
	{"attempt", "INTEGER"},
}

// document is the column worker, as JSON. It has the orders of operators, the newest done slot, the attempts that are
// spared and what the worker does, too: columns for them would take a new schema, which older programs refuse, and workers of two
// versions share the file while one machine is upgraded. Those ignore what they don't know in a
// document.
type document struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
	Orders  any    `json:"orders,omitempty"` // a text, unless another program has written it
	Done    any    `json:"done,omitempty"`   // a text likewise
	Spared  any    `json:"spared,omitempty"` // a whole number likewise
	Work    any    `json:"work,omitempty"`   // a text likewise
}

// encode gives the values of a record's columns. Times are Unix times in ms,
// NULL for the zero time.
func encode(r store.Record) ([]any, error) {
	doc := document{Host: r.Worker.Host, PID: r.Worker.PID, Version: r.Worker.Version}
	if r.Orders != "" {
		doc.Orders = r.Orders
	}
	if r.Done != "" {
		doc.Done = r.Done
	}
	if r.Spared != 0 {
		doc.Spared = r.Spared
	}
	if r.Work != "" {
		doc.Work = r.Work
	}
	var worker strings.Builder
	e := json.NewEncoder(&worker)
	e.SetEscapeHTML(false) // Escapes would make orders longer than a text may be when it is read.
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	var attempt any
	if r.Attempt != 0 {
		attempt = int64(r.Attempt)
	}
	return []any{
		r.WorkerType, r.Seq, string(r.Kind), r.InstanceID, r.Group, r.Claim, r.Priority,
		millis(r.SlotStart), millis(r.SlotEnd), millis(r.WindowStart), millis(r.WindowEnd),
		r.Token, r.Schedule, millis(r.FixedAt), millis(r.ReadAt), strings.TrimSuffix(worker.String(), "\n"), r.Metadata,
		millis(r.DoneUntil), attempt,
	}, nil
}

func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// decode reads a row of the columns. It never fails: the Defect lists all columns of
// the envelope that it can't decode. store.Record.CheckEnvelope checks the values.
// Invalid information is dropped and is no Defect, because a lease that is held must be
// obeyed.
func decode(row []any) store.Record {
	d := decoder{row: row}
	r := store.Record{
		WorkerType: d.text(need),
		Seq:        d.integer(need),
		Kind:       store.Kind(d.text(need)),
		InstanceID: d.text(need),
		Group:      d.text(optional),
		Claim:      d.text(need),
		Priority:   int(d.integer(information)),
		SlotStart:  d.time(information),
		SlotEnd:    d.time(information),
	}
	r.WindowStart, r.WindowEnd = d.time(need), d.time(need)
	r.Token = d.integer(need)
	r.Schedule = d.text(information)
	r.FixedAt, r.ReadAt = d.time(information), d.time(optional)
	d.worker(&r)
	r.Metadata = d.text(information)
	r.DoneUntil = d.time(information)
	// A value out of bounds must stay so where an int has 32 bits.
	r.Attempt = int(min(max(d.integer(information), -1), store.MaxAttempt+1))
	if len(d.errs) > 0 {
		why := strings.ReplaceAll(errors.Join(d.errs...).Error(), "\n", "; ")
		return store.Record{WorkerType: r.WorkerType, Seq: r.Seq, Defect: why}
	}
	return r.Cleaned()
}

// demand is the requirement on a column.
type demand int

const (
	need        demand = iota // a value of the right type
	optional                  // the same, or NULL
	information               // nothing: an invalid value is dropped
)

// decoder takes the columns of a row one after the other.
type decoder struct {
	row  []any
	at   int
	errs []error
}

// next returns the next value, nil for NULL.
func (d *decoder) next(as demand) any {
	v := d.row[d.at]
	d.at++
	if v == nil {
		d.bad(as == need, "is missing")
	}
	return v
}

// bad reports the column that was taken last, if that is a defect.
func (d *decoder) bad(defect bool, format string, args ...any) {
	if defect {
		d.errs = append(d.errs, fmt.Errorf("%s "+format, append([]any{columns[d.at-1].name}, args...)...))
	}
}

func (d *decoder) text(as demand) string {
	v := d.next(as)
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case int64:
		if v < 0 {
			// The query replaces a text that is too long by its negated size.
			d.bad(as != information, "has %d bytes, at most %d are read", -v, store.MaxMetadata)
			return ""
		}
	}
	d.bad(as != information, "is %T, want text", v)
	return ""
}

func (d *decoder) integer(as demand) int64 {
	v := d.next(as)
	switch v := v.(type) {
	case nil:
		return 0
	case int64:
		return v
	}
	d.bad(as != information, "is %T, want an integer", v)
	return 0
}

func (d *decoder) time(as demand) time.Time {
	_, there := d.row[d.at].(int64)
	ms := d.integer(as)
	if !there {
		return time.Time{}
	}
	t := store.FromMillis(ms)
	if year := t.Year(); year < 1 || year > 9999 {
		d.bad(as != information, "is %d ms from 1970, must be in the years 1 to 9999", ms)
		return time.Time{}
	}
	return t
}

// worker reads the one column that holds a document.
func (d *decoder) worker(r *store.Record) {
	text, _ := d.next(information).(string)
	var doc document
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return
	}
	r.Worker = store.Worker{Host: doc.Host, PID: doc.PID, Version: doc.Version}
	r.Orders, _ = doc.Orders.(string)
	r.Done, _ = doc.Done.(string)
	r.Work, _ = doc.Work.(string)
	if n, _ := doc.Spared.(float64); n == math.Trunc(n) {
		r.Spared = int(min(max(n, -1), store.MaxAttempt+1))
	}
}
