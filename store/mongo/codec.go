package mongo

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
)

// The stored fields. Those of the envelope are demanded by decode.
const (
	fieldID          = "_id"
	fieldWorkerType  = "workerType"
	fieldSeq         = "seq"
	fieldKind        = "kind"
	fieldInstanceID  = "instanceId"
	fieldGroup       = "group"
	fieldClaim       = "claim"
	fieldPriority    = "priority"
	fieldSlotStart   = "slotStart"
	fieldSlotEnd     = "slotEnd"
	fieldWindowStart = "windowStart"
	fieldWindowEnd   = "windowEnd"
	fieldToken       = "token"
	fieldSchedule    = "schedule"
	fieldFixedAt     = "fixedAt"
	fieldReadAt      = "readAt"
	fieldWorker      = "worker"
	fieldMetadata    = "metadata"
	fieldDoneUntil   = "doneUntil"
	fieldAttempt     = "attempt"
)

// projection asks for the fields that decode reads and no others, so that a
// large document of somebody else's is not carried over the network.
var projection = bson.D{
	{Key: fieldWorkerType, Value: 1},
	{Key: fieldSeq, Value: 1},
	{Key: fieldKind, Value: 1},
	{Key: fieldInstanceID, Value: 1},
	{Key: fieldGroup, Value: 1},
	{Key: fieldClaim, Value: 1},
	{Key: fieldPriority, Value: 1},
	{Key: fieldSlotStart, Value: 1},
	{Key: fieldSlotEnd, Value: 1},
	{Key: fieldWindowStart, Value: 1},
	{Key: fieldWindowEnd, Value: 1},
	{Key: fieldToken, Value: 1},
	{Key: fieldSchedule, Value: 1},
	{Key: fieldFixedAt, Value: 1},
	{Key: fieldReadAt, Value: 1},
	{Key: fieldWorker, Value: 1},
	{Key: fieldMetadata, Value: 1},
	{Key: fieldDoneUntil, Value: 1},
	{Key: fieldAttempt, Value: 1},
}

// encode is the document of a record that passed its Check.
func encode(r store.Record) bson.D {
	r = r.Truncated()
	d := bson.D{
		{Key: fieldID, Value: store.Key(r.WorkerType, r.Seq)},
		{Key: fieldWorkerType, Value: r.WorkerType},
		{Key: fieldSeq, Value: r.Seq},
		{Key: fieldKind, Value: string(r.Kind)},
		{Key: fieldInstanceID, Value: r.InstanceID},
		{Key: fieldGroup, Value: r.Group},
		{Key: fieldClaim, Value: r.Claim},
		{Key: fieldPriority, Value: int64(r.Priority)},
	}
	for _, t := range []struct {
		name  string
		value time.Time
	}{
		{fieldSlotStart, r.SlotStart},
		{fieldSlotEnd, r.SlotEnd},
		{fieldWindowStart, r.WindowStart},
		{fieldWindowEnd, r.WindowEnd},
		{fieldFixedAt, r.FixedAt},
		{fieldReadAt, r.ReadAt},
	} {
		if !t.value.IsZero() {
			d = append(d, bson.E{Key: t.name, Value: bson.NewDateTimeFromTime(t.value)})
		}
	}
	d = append(d,
		bson.E{Key: fieldToken, Value: r.Token},
		bson.E{Key: fieldSchedule, Value: r.Schedule},
		bson.E{Key: fieldWorker, Value: bson.D{
			// Check doesn't look at these; BSON holds nothing but UTF-8.
			{Key: "host", Value: strings.ToValidUTF8(r.Worker.Host, "\uFFFD")},
			{Key: "pid", Value: int64(r.Worker.PID)},
			{Key: "version", Value: strings.ToValidUTF8(r.Worker.Version, "\uFFFD")},
		}},
		bson.E{Key: fieldMetadata, Value: r.Metadata},
	)
	if !r.DoneUntil.IsZero() {
		d = append(d, bson.E{Key: fieldDoneUntil, Value: bson.NewDateTimeFromTime(r.DoneUntil)})
	}
	if r.Attempt != 0 {
		d = append(d, bson.E{Key: fieldAttempt, Value: int64(r.Attempt)})
	}
	return d
}

// decode reads the document at a key. It is strict with the envelope: what is
// missing or of a wrong type gives a record that has only its key and a Defect.
// Numbers may be of any type that holds them exactly, since other programs write
// 32-bit integers and doubles. Fields that this version doesn't know are passed
// over, and so are those that are for information only and are unfit: that costs
// the information, never the record.
func decode(workerType string, seq int64, raw bson.Raw) store.Record {
	fields, err := elements(raw)
	if err != nil {
		return defective(workerType, seq, err)
	}
	d := decoder{fields: fields}
	if got := d.text(fieldWorkerType, true, 63); got != workerType {
		d.fail(fieldWorkerType, "is not that of the key")
	}
	if got := d.whole(fieldSeq); got != seq {
		d.fail(fieldSeq, "is not that of the key")
	}
	r := store.Record{
		WorkerType:  workerType,
		Seq:         seq,
		Kind:        store.Kind(d.text(fieldKind, true, 32)),
		InstanceID:  d.text(fieldInstanceID, true, 256),
		Group:       d.text(fieldGroup, false, 256),
		Claim:       d.text(fieldClaim, true, 64),
		WindowStart: d.time(fieldWindowStart, true),
		WindowEnd:   d.time(fieldWindowEnd, true),
		Token:       d.whole(fieldToken),
		ReadAt:      d.time(fieldReadAt, false),
	}
	if d.err != nil {
		return defective(workerType, seq, d.err)
	}
	info := decoder{fields: fields, lenient: true}
	r.Priority = int(info.whole(fieldPriority))
	r.SlotStart, r.SlotEnd = info.time(fieldSlotStart, false), info.time(fieldSlotEnd, false)
	r.FixedAt, r.DoneUntil = info.time(fieldFixedAt, false), info.time(fieldDoneUntil, false)
	// What is beyond the bounds stays so where an int has 32 bits.
	r.Attempt = int(min(max(info.whole(fieldAttempt), -1), store.MaxAttempt+1))
	r.Schedule = info.text(fieldSchedule, false, math.MaxInt)
	r.Metadata = info.text(fieldMetadata, false, math.MaxInt)
	if doc, ok := info.value(fieldWorker).DocumentOK(); ok {
		if fields, err := elements(doc); err == nil {
			w := decoder{fields: fields, lenient: true}
			r.Worker.Host, r.Worker.Version = w.text("host", false, math.MaxInt), w.text("version", false, math.MaxInt)
			r.Worker.PID = int(w.whole("pid"))
		}
	}
	return r.Cleaned()
}

// defective is what is shown of a document that can't be decoded.
func defective(workerType string, seq int64, err error) store.Record {
	return store.Record{WorkerType: workerType, Seq: seq, Defect: oneLine(err.Error())}
}

// elements are the values of a document's fields by name. A field may occur more
// than once.
func elements(raw bson.Raw) (map[string][]bson.RawValue, error) {
	if err := raw.Validate(); err != nil {
		return nil, fmt.Errorf("broken BSON: %w", err)
	}
	list, err := raw.Elements()
	if err != nil {
		return nil, fmt.Errorf("broken BSON: %w", err)
	}
	fields := make(map[string][]bson.RawValue, len(list))
	for _, e := range list {
		name, err := e.KeyErr()
		if err != nil {
			return nil, fmt.Errorf("broken BSON: %w", err)
		}
		value, err := e.ValueErr()
		if err != nil {
			return nil, fmt.Errorf("broken BSON: %w", err)
		}
		fields[name] = append(fields[name], value)
	}
	return fields, nil
}

// decoder reads single fields and remembers the first thing that is wrong. A
// lenient one gives zero values instead.
type decoder struct {
	fields  map[string][]bson.RawValue
	lenient bool
	err     error
}

func (d *decoder) fail(name, why string) {
	if d.err == nil && !d.lenient {
		d.err = fmt.Errorf("%s: %s", name, why)
	}
}

// value is that of a field, or the zero RawValue. Of a field that occurs twice
// two readers might see different values, so neither counts.
func (d *decoder) value(name string) bson.RawValue {
	switch values := d.fields[name]; len(values) {
	case 0:
		return bson.RawValue{}
	case 1:
		return values[0]
	default:
		d.fail(name, "occurs twice")
		return bson.RawValue{}
	}
}

// wrong is a value of a type that can't be used.
func (d *decoder) wrong(name string, v bson.RawValue, want string) {
	if v.Type == 0 {
		d.fail(name, "is missing")
		return
	}
	d.fail(name, fmt.Sprintf("is of type %s, must be %s", v.Type, want))
}

// missing reports whether there is no value: no field, or null.
func missing(v bson.RawValue) bool { return v.Type == 0 || v.Type == bson.TypeNull }

func (d *decoder) text(name string, required bool, most int) string {
	v := d.value(name)
	if missing(v) && !required {
		return ""
	}
	s, ok := v.StringValueOK()
	switch {
	case !ok:
		d.wrong(name, v, "a string")
		return ""
	case len(s) > most:
		d.fail(name, fmt.Sprintf("has %d bytes, at most %d allowed", len(s), most))
		return ""
	case !utf8.ValidString(s):
		d.fail(name, "is not UTF-8")
		return ""
	}
	return s
}

func (d *decoder) time(name string, required bool) time.Time {
	v := d.value(name)
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
		d.fail(name, fmt.Sprintf("is %d ms from 1970, must be in the years 1 to 9999", ms))
		return time.Time{}
	}
	return t
}

func (d *decoder) whole(name string) int64 {
	v := d.value(name)
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

// seqOf is the Seq in a document's id, if it is a key that can be followed.
func seqOf(workerType, id string) (int64, bool) {
	digits, ok := strings.CutPrefix(id, workerType+":")
	if !ok || len(digits) != 20 {
		return 0, false
	}
	seq, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || seq < 1 || seq > store.MaxSeq || digits[0] != '0' {
		return 0, false
	}
	return seq, true
}
