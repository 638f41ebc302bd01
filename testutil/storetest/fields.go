package storetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/store"
)

// Fields are the stored fields of a record, by name, in the form that
// Harness.Plant takes, without those of the key (workerType, seq). Zero times
// are nil.
func Fields(r store.Record) map[string]any {
	at := func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return store.FromMillis(t.UnixMilli())
	}
	return map[string]any{
		"kind":        string(r.Kind),
		"instanceId":  r.InstanceID,
		"group":       r.Group,
		"claim":       r.Claim,
		"priority":    int64(r.Priority),
		"slotStart":   at(r.SlotStart),
		"slotEnd":     at(r.SlotEnd),
		"windowStart": at(r.WindowStart),
		"windowEnd":   at(r.WindowEnd),
		"token":       r.Token,
		"schedule":    r.Schedule,
		"fixedAt":     at(r.FixedAt),
		"readAt":      at(r.ReadAt),
		"metadata":    r.Metadata,
		"doneUntil":   at(r.DoneUntil),
		"attempt":     int64(r.Attempt),
		"spared":      int64(r.Spared),
		"work":        r.Work,
		"orders":      r.Orders,
		"done":        r.Done,
		"worker": map[string]any{
			"host": r.Worker.Host, "pid": int64(r.Worker.PID), "version": r.Worker.Version,
		},
	}
}

// Decode reads fields as the contract requires of a store: an envelope that can't be
// decoded gives a record that has only its key and Defect, and invalid information is
// dropped. It is for harnesses of stores that keep records as Go values and so have no
// decoder.
func Decode(workerType string, seq int64, fields map[string]any) store.Record {
	d := decoder{fields: fields}
	if v, ok := fields["workerType"]; ok && v != any(workerType) {
		d.fail("workerType", v, "contradicts the key")
	}
	if v, ok := fields["seq"]; ok && v != any(seq) {
		d.fail("seq", v, "contradicts the key")
	}
	r := store.Record{
		WorkerType:  workerType,
		Seq:         seq,
		Kind:        store.Kind(d.text("kind", true, 32)),
		InstanceID:  d.text("instanceId", true, 256),
		Group:       d.text("group", false, 256),
		Claim:       d.text("claim", true, 64),
		WindowStart: d.time("windowStart", true),
		WindowEnd:   d.time("windowEnd", true),
		Token:       d.whole("token"),
		ReadAt:      d.time("readAt", false),
	}
	if d.defect != "" {
		return store.Record{WorkerType: workerType, Seq: seq, Defect: d.defect}
	}
	r.SlotStart, _ = fields["slotStart"].(time.Time)
	r.SlotEnd, _ = fields["slotEnd"].(time.Time)
	r.FixedAt, _ = fields["fixedAt"].(time.Time)
	r.DoneUntil, _ = fields["doneUntil"].(time.Time)
	r.Schedule, _ = fields["schedule"].(string)
	r.Metadata, _ = fields["metadata"].(string)
	r.Orders, _ = fields["orders"].(string)
	r.Done, _ = fields["done"].(string)
	r.Work, _ = fields["work"].(string)
	priority, _ := fields["priority"].(int64)
	r.Priority = int(priority)
	attempt, _ := fields["attempt"].(int64)
	// A value out of bounds must stay so where an int has 32 bits.
	r.Attempt = int(min(max(attempt, -1), store.MaxAttempt+1))
	spared, _ := fields["spared"].(int64)
	r.Spared = int(min(max(spared, -1), store.MaxAttempt+1))
	if w, ok := fields["worker"].(map[string]any); ok {
		r.Worker.Host, _ = w["host"].(string)
		r.Worker.Version, _ = w["version"].(string)
		pid, _ := w["pid"].(int64)
		r.Worker.PID = int(pid)
	}
	return r.Cleaned()
}

// decoder remembers the first thing that was wrong.
type decoder struct {
	fields map[string]any
	defect string
}

func (d *decoder) fail(name string, v any, why string) {
	if d.defect == "" {
		d.defect = fmt.Sprintf("%s %.40q: %s", name, fmt.Sprint(v), why)
	}
}

func (d *decoder) text(name string, required bool, most int) string {
	v := d.fields[name]
	s, ok := v.(string)
	switch {
	case v == nil && !required:
	case !ok:
		d.fail(name, v, "must be a string")
	case required && s == "":
		d.fail(name, v, "must not be empty")
	case len(s) > most:
		d.fail(name, v, "is too long")
	}
	return s
}

func (d *decoder) time(name string, required bool) time.Time {
	v := d.fields[name]
	t, ok := v.(time.Time)
	if !ok && (v != nil || required) {
		d.fail(name, v, "must be a time")
	}
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		d.fail(name, v, "must be in the years 1 to 9999")
	}
	return t
}

func (d *decoder) whole(name string) int64 {
	switch v := d.fields[name].(type) {
	case int64:
		return v
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
		d.fail(name, v, "must be a whole number below 2^53")
	default:
		d.fail(name, v, "must be a number")
	}
	return 0
}

// Document is the JSON text of a document that the suite plants, for stores that keep such: the fields
// that Plant or PlantPresence is given, and those of the key unless they are among them. Times are
// RFC 3339 with milliseconds, as those of [store.Format], and labels are a list of objects with name and
// value.
func Document(t testing.TB, key, fields map[string]any) []byte {
	t.Helper()
	all := maps.Clone(key)
	for name, v := range fields {
		switch v := v.(type) {
		case time.Time:
			all[name] = store.Format(v)
		case map[string]any:
			all[name] = v
			if name == "labels" {
				all[name] = labels(v)
			}
		default:
			all[name] = v
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func labels(m map[string]any) []map[string]any {
	list := []map[string]any{}
	for name, value := range m {
		list = append(list, map[string]any{"name": name, "value": value})
	}
	return list
}

// leastDocument is the least MaxDocument in bytes: the largest valid presence is about as large, and the
// suite plants texts beyond all limits of fields besides.
const leastDocument = 256 << 10

// long stands for a text of so many bytes in a planted document, far beyond what its field may have.
type long int

// fit puts texts in place of each long, which leave room for two of them in a document of the store. They have a
// sixteenth of the bytes under the race detector: it takes many times as long to decode them there, and finds
// no more in the longer text.
func (b *bench) fit(v any) any {
	switch v := v.(type) {
	case long:
		n := int(v)
		if race.Enabled {
			n /= 16
		}
		if b.MaxDocument > 0 {
			n = min(n, (b.MaxDocument-8<<10)/2)
		}
		return strings.Repeat("🦫", n/len("🦫"))
	case map[string]any:
		fitting := map[string]any{}
		for name, v := range v {
			fitting[name] = b.fit(v)
		}
		return fitting
	default:
		return v
	}
}
