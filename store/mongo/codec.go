package mongo

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
)

// fieldID is the name of the key. The other names are those of package document.
const fieldID = "_id"

// projection asks for the fields that decode reads.
var projection = func() (d bson.D) {
	for _, name := range document.Fields() {
		d = append(d, bson.E{Key: name, Value: 1})
	}
	return d
}()

// encode is the document of a record that passed its Check.
func encode(r store.Record) bson.D {
	r = r.Truncated()
	return slices.Concat(
		bson.D{
			{Key: fieldID, Value: store.Key(r.WorkerType, r.Seq)},
			{Key: document.WorkerType, Value: r.WorkerType},
			{Key: document.Seq, Value: r.Seq},
			{Key: document.Kind, Value: string(r.Kind)},
			{Key: document.InstanceID, Value: r.InstanceID},
			{Key: document.Group, Value: r.Group},
			{Key: document.Claim, Value: r.Claim},
			{Key: document.Priority, Value: int64(r.Priority)},
		},
		date(document.SlotStart, r.SlotStart), date(document.SlotEnd, r.SlotEnd),
		date(document.WindowStart, r.WindowStart), date(document.WindowEnd, r.WindowEnd),
		date(document.FixedAt, r.FixedAt), date(document.ReadAt, r.ReadAt),
		bson.D{
			{Key: document.Token, Value: r.Token},
			{Key: document.Schedule, Value: r.Schedule},
			{Key: document.Worker, Value: bson.D{
				// Check doesn't look at these; BSON holds nothing but UTF-8.
				{Key: "host", Value: strings.ToValidUTF8(r.Worker.Host, "\uFFFD")},
				{Key: "pid", Value: int64(r.Worker.PID)},
				{Key: "version", Value: strings.ToValidUTF8(r.Worker.Version, "\uFFFD")},
			}},
			{Key: document.Metadata, Value: r.Metadata},
		},
		date(document.DoneUntil, r.DoneUntil), given(document.Attempt, int64(r.Attempt)), given(document.Spared, int64(r.Spared)), given(document.Work, r.Work), given(document.Orders, r.Orders), given(document.Done, r.Done),
	)
}

// date is a field with a time, or none for the zero time.
func date(name string, t time.Time) bson.D {
	if t.IsZero() {
		return nil
	}
	return bson.D{{Key: name, Value: bson.NewDateTimeFromTime(t)}}
}

// given is a field with a value, or none for the zero value.
func given[V comparable](name string, v V) bson.D {
	var none V
	if v == none {
		return nil
	}
	return bson.D{{Key: name, Value: v}}
}

// decode reads the document at a key. Numbers may be of any type that holds them
// exactly, since other programs write 32-bit integers and doubles.
func decode(workerType string, seq int64, raw []byte) store.Record {
	values, err := elements(raw)
	if err != nil {
		return document.Defective(workerType, seq, err)
	}
	return document.Decode(workerType, seq, func(f *document.Faults) document.Source { return source{values, f} })
}

// elements are the values of a document's fields by name.
func elements(raw bson.Raw) (document.Values[bson.RawValue], error) {
	if err := raw.Validate(); err != nil {
		return nil, fmt.Errorf("broken BSON: %w", err)
	}
	list, err := raw.Elements()
	if err != nil {
		return nil, fmt.Errorf("broken BSON: %w", err)
	}
	values := make(document.Values[bson.RawValue], len(list))
	for _, e := range list {
		name, err := e.KeyErr()
		if err != nil {
			return nil, fmt.Errorf("broken BSON: %w", err)
		}
		value, err := e.ValueErr()
		if err != nil {
			return nil, fmt.Errorf("broken BSON: %w", err)
		}
		values[name] = append(values[name], value)
	}
	return values, nil
}

// source reads single fields of a BSON document.
type source struct {
	values document.Values[bson.RawValue]
	faults *document.Faults
}

// wrong notes a value of a type that can't be used.
func (d source) wrong(name string, v bson.RawValue, want string) {
	if v.Type == 0 {
		d.faults.Add(name, "is missing")
		return
	}
	d.faults.Add(name, fmt.Sprintf("is of type %s, must be %s", v.Type, want))
}

// missing reports whether there is no value: no field, or null.
func missing(v bson.RawValue) bool { return v.Type == 0 || v.Type == bson.TypeNull }

func (d source) Text(name string, required bool, most int) string {
	v := d.values.One(name, d.faults)
	if missing(v) && !required {
		return ""
	}
	s, ok := v.StringValueOK()
	if !ok {
		d.wrong(name, v, "a string")
		return ""
	}
	return document.Bounded(name, s, most, d.faults)
}

func (d source) Time(name string, required bool) time.Time {
	v := d.values.One(name, d.faults)
	if missing(v) && !required {
		return time.Time{}
	}
	ms, ok := v.DateTimeOK()
	if !ok {
		d.wrong(name, v, "a date")
		return time.Time{}
	}
	t := store.FromMillis(ms)
	if year := t.Year(); year < 1 || year > 9999 {
		d.faults.Add(name, fmt.Sprintf("is %d ms from 1970, must be in the years 1 to 9999", ms))
		return time.Time{}
	}
	return t
}

func (d source) Whole(name string) int64 {
	v := d.values.One(name, d.faults)
	if n, ok := v.Int64OK(); ok {
		return n
	}
	if n, ok := v.Int32OK(); ok {
		return int64(n)
	}
	if f, ok := v.DoubleOK(); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f)
	}
	d.wrong(name, v, "a whole number below 2^53")
	return 0
}

// Token is Whole, because BSON has integers of 64 bits.
func (d source) Token(name string) int64 { return d.Whole(name) }

func (d source) Part(name string) document.Source {
	doc, ok := d.values.One(name, d.faults).DocumentOK()
	if !ok {
		return nil
	}
	values, err := elements(doc)
	if err != nil {
		return nil
	}
	return source{values, d.faults}
}
