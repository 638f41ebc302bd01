package storetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

var documentCases = []testCase{
	{"a planted record comes back like an appended one", func(t *testing.T, b *bench) {
		want := Grant("job", 1)
		want.Group = "eu"
		b.Plant(t, "job", 1, Fields(want))
		wantRecord(t, "Get", get(t, b, "job", 1), want)
		wantRecord(t, "Tail", tail(t, b, "job", 1)[0], want)
		wantConflict(t, b, claimed("job", 1, "second"))
	}},
	{"a record of an unknown kind comes back by its envelope", func(t *testing.T, b *bench) {
		r := Grant("job", 1)
		r.Kind = "hologram"
		wantEnvelope(t, b, r, Fields(r))
	}},
	{"a record with unknown fields comes back by its envelope", func(t *testing.T, b *bench) {
		r := Grant("job", 1)
		f := Fields(r)
		f["futureText"] = "x"
		f["futureObject"] = map[string]any{"deep": map[string]any{"n": int64(7)}}
		wantEnvelope(t, b, r, f)
	}},
	{"a record whose optional fields are missing comes back by its envelope", func(t *testing.T, b *bench) {
		r := Grant("job", 1)
		f := Fields(r)
		for _, name := range []string{"group", "priority", "slotStart", "slotEnd", "schedule", "fixedAt", "readAt", "worker", "metadata", "doneUntil", "attempt", "orders", "done"} {
			delete(f, name)
		}
		b.Plant(t, "job", 1, f)
		for what, got := range b.both(t, "job", 1) {
			if err := got.CheckEnvelope(); err != nil || got.Claim != r.Claim || !got.ReadAt.IsZero() || got.Group != "" || !got.DoneUntil.IsZero() || got.Attempt != 0 || got.Spared != 0 || got.Orders != "" || got.Done != "" {
				t.Errorf("%s = %+v (%v), want the envelope with a zero ReadAt, no group and nothing done or begun", what, got, err)
			}
		}
	}},
	documents("a document without a field of the envelope has a Defect", set(gone{}, required...), (*bench).wantDefect),
	documents("a document with a field of a wrong type has a Defect", wrongTypes(), (*bench).wantDefect),
	documents("a document whose seq contradicts its key has a Defect and stays at its key",
		values("seq", int64(1), int64(9_999), int64(math.MaxInt64), int64(-1), "2", nil, 2.5), (*bench).wantDefect),
	documents("a document whose workerType contradicts its key has a Defect and stays at its key",
		values("workerType", "other", "", int64(7), nil), func(b *bench, t *testing.T, workerType string, f map[string]any) {
			b.wantDefect(t, workerType, f)
			if got := tail(t, b, "other", 9); len(got) != 0 {
				t.Errorf("Tail(other) = %+v, want none: the key is that of %s", got, workerType)
			}
		}),
	documents("a document with a time of its envelope outside the years 1 to 9999 has a Defect", slices.Concat(
		values("windowStart", ages...), values("windowEnd", ages...), values("readAt", ages...)), (*bench).wantDefect),
	documents("a document with huge text in its envelope has a short Defect",
		set(long(1<<20), "kind", "claim", "instanceId", "group"), (*bench).wantDefect),
	documents("a record that can be decoded but breaks a rule of the envelope fails its check", slices.Concat(
		values("token", int64(0), int64(-5)), values("windowEnd", Grant("job", 2).WindowStart, Grant("job", 2).WindowStart.AddDate(-1, 0, 0)), set("", "kind", "claim"),
	), func(b *bench, t *testing.T, workerType string, f map[string]any) {
		b.Plant(t, workerType, 2, f)
		for what, got := range b.both(t, workerType, 2) {
			if got.CheckEnvelope() == nil || got.Seq != 2 {
				t.Errorf("%s = %+v, want Seq 2, with a Defect or a CheckEnvelope that fails", what, got)
			}
		}
	}),
	{"information of a wrong type is left out, and the record is obeyed", func(t *testing.T, b *bench) {
		wantObeyed(t, b, []unfit{
			{"priority", "high", func(r *store.Record) { r.Priority = 0 }},
			{"slotStart", "monday", func(r *store.Record) { r.SlotStart = time.Time{} }},
			{"slotEnd", true, func(r *store.Record) { r.SlotEnd = time.Time{} }},
			{"fixedAt", true, func(r *store.Record) { r.FixedAt = time.Time{} }},
			{"slotStart", ages[0], func(r *store.Record) { r.SlotStart = time.Time{} }},
			{"slotEnd", ages[1], func(r *store.Record) { r.SlotEnd = time.Time{} }},
			{"fixedAt", ages[0], func(r *store.Record) { r.FixedAt = time.Time{} }},
			{"doneUntil", ages[0], notDone},
			{"doneUntil", ages[1], notDone},
			{"doneUntil", "yesterday", notDone},
			{"doneUntil", true, notDone},
			{"doneUntil", 1.5, notDone},
			{"attempt", "third", notCounted},
			{"attempt", true, notCounted},
			{"attempt", 2.5, notCounted},
			{"attempt", map[string]any{"n": int64(2)}, notCounted},
			{"schedule", int64(5), noSchedule},
			{"schedule", map[string]any{"every": "5m"}, noSchedule},
			{"metadata", int64(5), noMetadata},
			{"metadata", map[string]any{"a": "b"}, noMetadata},
			{"orders", int64(5), noOrders},
			{"orders", map[string]any{"kind": "pause"}, noOrders},
			{"done", int64(5), noDoneSlot},
			{"done", map[string]any{"start": "2026-03-02T00:00:00.000Z"}, noDoneSlot},
			{"worker", "me", func(r *store.Record) { r.Worker = store.Worker{} }},
			{"worker", map[string]any{"host": int64(5), "pid": "x", "version": true}, func(r *store.Record) { r.Worker = store.Worker{} }},
		})
	}},
	{"information beyond the limits is left out, and the record is obeyed", func(t *testing.T, b *bench) {
		const huge = long(1 << 20)
		worker := func(host, version any) map[string]any {
			return map[string]any{"host": host, "pid": int64(1), "version": version}
		}
		wantObeyed(t, b, []unfit{
			{"metadata", strings.Repeat("m", store.MaxMetadata+1), noMetadata},
			{"metadata", strings.Repeat("m", 9<<10), noMetadata},
			{"metadata", huge, noMetadata},
			{"schedule", strings.Repeat("s", 513), noSchedule},
			{"schedule", huge, noSchedule},
			{"orders", unfitOrders[0], noOrders},
			{"orders", unfitOrders[1], noOrders},
			{"orders", unfitOrders[2], noOrders},
			{"orders", unfitOrders[3], noOrders},
			{"done", unfitDone[0], noDoneSlot},
			{"done", unfitDone[1], noDoneSlot},
			{"done", unfitDone[2], noDoneSlot},
			{"attempt", int64(-1), notCounted},
			{"attempt", int64(store.MaxAttempt + 1), notCounted},
			{"attempt", int64(1<<32 + 5), notCounted},
			{"spared", int64(-1), notSpared},
			{"work", strings.Repeat("w", store.MaxWork+1), func(r *store.Record) { r.Work = "" }},
			{"spared", int64(1<<32 + 1), notSpared},
			{"worker", worker(huge, huge), nil},
			{"worker", worker("h", huge), nil},
			{"worker", worker(huge, "v"), nil},
		})
	}},
	documents("a fault of the envelope is a Defect beside information beyond the limits, too", set(gone{}, required...),
		func(b *bench, t *testing.T, workerType string, f map[string]any) {
			f["metadata"] = strings.Repeat("m", 9<<10)
			b.wantDefect(t, workerType, f)
		}),
	{"an empty document has a Defect", func(t *testing.T, b *bench) { b.wantDefect(t, "job", map[string]any{}) }},
	{"a document that can't be decoded takes part in everything but decoding", plantedTakesPart},
	{"keys beyond MaxSeq are passed over and reported first, in addition to the limit", unreachableAbove},
	{"keys below 1 are never followed", unreachableBelow},
}

// ages are times that no record may have.
var ages = []any{time.Date(10_000, time.January, 1, 0, 0, 0, 0, time.UTC), time.Date(0, time.December, 31, 0, 0, 0, 0, time.UTC)}

// required are the fields of the envelope that every record has.
var required = []string{"kind", "instanceId", "claim", "token", "windowStart", "windowEnd"}

// field is a value that a document has in place of a good one. gone deletes the field.
type field struct {
	name  string
	value any
}

type gone struct{}

// set gives several fields one value.
func set(value any, names ...string) (all []field) {
	for _, name := range names {
		all = append(all, field{name, value})
	}
	return all
}

// values gives one field several values, in turn.
func values(name string, values ...any) (all []field) {
	for _, v := range values {
		all = append(all, field{name, v})
	}
	return all
}

// wrongTypes are values that the fields of the envelope can't have.
func wrongTypes() []field {
	all := append(set(true, required...), set(map[string]any{"$gt": ""}, required...)...)
	all = append(all, set(nil, required...)...)
	for _, name := range []string{"kind", "instanceId", "claim"} {
		all = append(all, values(name, int64(7), 0.5)...)
	}
	return slices.Concat(all, values("token", "many", 1.5, 1e300), set("tomorrow", "windowStart", "windowEnd"),
		values("group", true, map[string]any{"$gt": ""}, int64(7)), values("readAt", true, map[string]any{"$gt": ""}, "tomorrow"))
}

// documents is a case of grants as Seq 2, each of its own worker type and with one field
// changed.
func documents(name string, changes []field, want func(b *bench, t *testing.T, workerType string, fields map[string]any)) testCase {
	return testCase{name, func(t *testing.T, b *bench) {
		for i, c := range changes {
			b.part(t, fmt.Sprintf("%s is %T %.20v", c.name, c.value, c.value), func(t *testing.T) {
				workerType := fmt.Sprint("job", i)
				f := Fields(Grant(workerType, 2))
				f[c.name] = b.fit(c.value)
				if c.value == any(gone{}) {
					delete(f, c.name)
				}
				want(b, t, workerType, f)
			})
		}
	}}
}

// unfit is an invalid value of a field of a grant, and the expected record. It is nil for
// a worker, of which a store may drop more than the invalid part, but must not return
// anything huge.
type unfit struct {
	name  string
	value any
	blank func(r *store.Record)
}

func noOrders(r *store.Record)   { r.Orders = "" }
func noDoneSlot(r *store.Record) { r.Done = "" }
func noSchedule(r *store.Record) { r.Schedule = "" }
func noMetadata(r *store.Record) { r.Metadata = "" }
func notDone(r *store.Record)    { r.DoneUntil = time.Time{} }
func notCounted(r *store.Record) { r.Attempt = 0 }
func notSpared(r *store.Record)  { r.Spared = 0 }

// wantObeyed plants grants with invalid information, and demands all their other fields.
func wantObeyed(t *testing.T, b *bench, cases []unfit) {
	t.Helper()
	for i, c := range cases {
		b.part(t, fmt.Sprintf("%s is %.20v", c.name, c.value), func(t *testing.T) {
			r := Grant(fmt.Sprint("job", i), 2)
			r.Group = "eu"
			f := Fields(r)
			f[c.name] = b.fit(c.value)
			add(t, b, Grant(r.WorkerType, 1))
			b.Plant(t, r.WorkerType, 2, f)
			for what, got := range b.both(t, r.WorkerType, 2) {
				want := r
				if c.blank != nil {
					c.blank(&want)
				} else if want.Worker = got.Worker; len(got.Worker.Host)+len(got.Worker.Version) > 9 {
					t.Errorf("%s: Worker has a Host of %d and a Version of %d bytes, want what is huge left out", what, len(got.Worker.Host), len(got.Worker.Version))
				}
				wantRecord(t, what, got, want)
				if err := got.CheckEnvelope(); err != nil {
					t.Errorf("%s: CheckEnvelope() = %v, want nil: the lease is in force", what, err)
				}
			}
			wantConflict(t, b, claimed(r.WorkerType, 2, "second"))
		})
	}
}

// both reads a record by Get and by Tail; it must be the newest.
func (b *bench) both(t *testing.T, workerType string, seq int64) map[string]store.Record {
	t.Helper()
	newest := tail(t, b, workerType, 1)
	if len(newest) != 1 {
		t.Fatalf("Tail(%q, 1) = %+v, want the document at Seq %d: none may be hidden", workerType, newest, seq)
	}
	return map[string]store.Record{"Get": get(t, b, workerType, seq), "Tail": newest[0]}
}

// wantDefect plants a document as Seq 2, above a good record, and demands that
// it is shown at its key, with a Defect.
func (b *bench) wantDefect(t *testing.T, workerType string, fields map[string]any) {
	t.Helper()
	add(t, b, Grant(workerType, 1))
	b.Plant(t, workerType, 2, fields)
	for what, got := range b.both(t, workerType, 2) {
		if got.Defect == "" || got.WorkerType != workerType || got.Seq != 2 {
			t.Errorf("%s = %.300s, want WorkerType %q, Seq 2 and a Defect", what, fmt.Sprintf("%+v", got), workerType)
		}
		if len(got.Defect) > 1<<10 {
			t.Errorf("%s: Defect has %d bytes, want it bounded: %.100q…", what, len(got.Defect), got.Defect)
		}
	}
	wantSeqs(t, "Tail", tail(t, b, workerType, 9), 2, 1)
	wantConflict(t, b, claimed(workerType, 2, "second"))
	add(t, b, Grant(workerType, 3))
	wantSeqs(t, "Tail", tail(t, b, workerType, 9), 3, 2, 1)
	wantRecord(t, "the record above a defect", tail(t, b, workerType, 1)[0], Grant(workerType, 3))
}

func wantEnvelope(t *testing.T, b *bench, r store.Record, fields map[string]any) {
	t.Helper()
	b.Plant(t, r.WorkerType, r.Seq, fields)
	for what, got := range b.both(t, r.WorkerType, r.Seq) {
		wantRecord(t, what, got, r)
		if err := got.CheckEnvelope(); err != nil {
			t.Errorf("%s: CheckEnvelope() = %v, want nil", what, err)
		}
	}
}

func plantedTakesPart(t *testing.T, b *bench) {
	addRange(t, b, "job", 1, 3)
	bad := Fields(Grant("job", 4))
	delete(bad, "windowEnd")
	b.Plant(t, "job", 4, bad)
	wantTypes(t, b, "job")
	wantSeqs(t, "Tail(job)", tail(t, b, "job", 9), 4, 3, 2, 1)
	wantTrim(t, b, "job", store.MaxSeq, 3)
	wantSeqs(t, "Tail(job) after a trim", tail(t, b, "job", 9), 4)
	addRange(t, b, "job", 5, 6)
	wantTrim(t, b, "job", 6, 2)
	wantSeqs(t, "Tail(job) after another trim", tail(t, b, "job", 9), 6)
}

func unreachableAbove(t *testing.T, b *bench) {
	addRange(t, b, "job", 1, 3)
	for _, seq := range []int64{store.MaxSeq + 1, store.MaxSeq + 2, 1 << 60, math.MaxInt64} {
		b.Plant(t, "job", seq, Fields(Grant("job", seq)))
		for limit, want := range map[int][]int64{1: {0, 3}, 2: {0, 3, 2}, 3: {0, 3, 2, 1}, 99: {0, 3, 2, 1}} {
			got := tail(t, b, "job", limit)
			wantSeqs(t, fmt.Sprintf("Tail(job, %d) with an unreachable key %d", limit, seq), got, want...)
			if len(got) > 0 && got[0].Defect == "" {
				t.Errorf("Tail(job, %d) with an unreachable key %d: the first has no Defect", limit, seq)
			}
			for _, r := range got[min(1, len(got)):] {
				wantRecord(t, "Tail(job) after an unreachable record", r, Grant("job", r.Seq))
			}
		}
	}
	wantTrim(t, b, "job", store.MaxSeq, 2)
	wantSeqs(t, "Tail(job) after a trim", tail(t, b, "job", 9), 0, 3)
	add(t, b, Grant("job", 4))
	wantSeqs(t, "Tail(job) after an append", tail(t, b, "job", 1), 0, 4)
}

func unreachableBelow(t *testing.T, b *bench) {
	for _, seq := range []int64{0, -1, -7} {
		b.Plant(t, "job", seq, Fields(Grant("job", seq)))
	}
	followed := func(what string, want ...int64) {
		t.Helper()
		got := slices.DeleteFunc(tail(t, b, "job", 9), func(r store.Record) bool { return r.Seq == 0 && r.Defect != "" })
		wantSeqs(t, what, got, want...)
	}
	followed("Tail(job) of unreachable keys alone")
	addRange(t, b, "job", 1, 3)
	followed("Tail(job) above unreachable keys", 3, 2, 1)
	for _, limit := range []int{1, 2} {
		got := tail(t, b, "job", limit)
		if n := len(got); n == 0 || n > limit+1 || got[n-1].Seq != int64(4-limit) {
			t.Errorf("Tail(job, %d) above unreachable keys = %+v, want the newest %d", limit, got, limit)
		}
	}
	trim(t, b, "job", store.MaxSeq)
	followed("Tail(job) after a trim", 3)
}
