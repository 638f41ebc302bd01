package mongo

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// marshalled is the stored form of a record, with some fields replaced, or removed
// if the new value is nil.
func marshalled(t testing.TB, r store.Record, change bson.M) bson.Raw {
	t.Helper()
	var out bson.D
	for _, e := range encode(r) {
		v, changed := change[e.Key]
		switch {
		case !changed:
			out = append(out, e)
		case v != nil:
			out = append(out, bson.E{Key: e.Key, Value: v})
		}
	}
	raw, err := bson.Marshal(out)
	must(t, "Marshal()", err)
	return raw
}

func TestStoredDocumentIsAsDocumented(t *testing.T) {
	t.Parallel()
	r := store.Record{
		WorkerType: "job", Seq: 7, Kind: store.KindGrant, InstanceID: "host-1", Claim: "c1", Priority: 2,
		WindowStart: store.FromMillis(1_700_000_000_000).Add(999 * time.Microsecond), WindowEnd: store.FromMillis(1_700_000_300_000),
		Token: 1_700_000_000_000, Schedule: "every 5m0s", Worker: store.Worker{Host: "h", PID: 42, Version: "v1"}, Metadata: "m",
	}
	want := bson.D{
		{Key: "_id", Value: "job:00000000000000000007"},
		{Key: "workerType", Value: "job"},
		{Key: "seq", Value: int64(7)},
		{Key: "kind", Value: "grant"},
		{Key: "instanceId", Value: "host-1"},
		{Key: "group", Value: ""},
		{Key: "claim", Value: "c1"},
		{Key: "priority", Value: int64(2)},
		{Key: "windowStart", Value: bson.DateTime(1_700_000_000_000)},
		{Key: "windowEnd", Value: bson.DateTime(1_700_000_300_000)},
		{Key: "token", Value: int64(1_700_000_000_000)},
		{Key: "schedule", Value: "every 5m0s"},
		{Key: "worker", Value: bson.D{{Key: "host", Value: "h"}, {Key: "pid", Value: int64(42)}, {Key: "version", Value: "v1"}}},
		{Key: "metadata", Value: "m"},
	}
	if diff := cmp.Diff(want, encode(r)); diff != "" {
		t.Errorf("encode() (-want +got):\n%s", diff)
	}
	r.DoneUntil, r.Attempt = r.WindowStart, 3
	want = append(want, bson.E{Key: "doneUntil", Value: bson.DateTime(1_700_000_000_000)}, bson.E{Key: "attempt", Value: int64(3)})
	if diff := cmp.Diff(want, encode(r)); diff != "" {
		t.Errorf("encode() of a job that is run once per slot (-want +got):\n%s", diff)
	}
}

func TestAnOddWorkerSpoilsNoRecord(t *testing.T) {
	t.Parallel()
	documenttest.OddWorker(t, again(t))
}

func TestDecodeAcceptsNumbersOfOtherWriters(t *testing.T) {
	t.Parallel()
	want := storetest.Grant("job", 7)
	want.Token = 1234
	for _, c := range []bson.M{
		{},
		{"seq": int32(7), "token": int32(1234), "priority": int32(want.Priority), "attempt": int32(want.Attempt)},
		{"seq": 7.0, "token": 1234.0, "priority": float64(want.Priority), "attempt": float64(want.Attempt)},
	} {
		documenttest.Equal(t, fmt.Sprintf("decode() with %v", c), decode("job", 7, marshalled(t, want, c)), want)
	}
}

// The suite plants the values that other stores have, too.
func TestDecodeNamesTheDefect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field string
		value any
		want  string
	}{
		{"kind", bson.Null{}, "kind: is of type null, must be a string"},
		{"claim", bson.Symbol("c"), "claim: is of type symbol, must be a string"},
		{"claim", "\xff", "claim: is not UTF-8"},
		{"token", math.NaN(), "token: is of type double, must be a whole number below 2^53"},
		{"token", math.Inf(1), "token: is of type double, must be a whole number below 2^53"},
		{"token", float64(1 << 53), "token: is of type double, must be a whole number below 2^53"},
		{"token", bson.NewDecimal128(0, 5), "token: is of type 128-bit decimal, must be a whole number below 2^53"},
		{"seq", int64(8), "seq: is not that of the key"},
		{"workerType", "other", "workerType: is not that of the key"},
		{"windowStart", int64(1_700_000_000_000), "windowStart: is of type 64-bit integer, must be a date"},
		{"windowEnd", bson.DateTime(math.MaxInt64), "windowEnd: is 9223372036854775807 ms from 1970, must be in the years 1 to 9999"},
		{"windowEnd", bson.DateTime(math.MinInt64), "windowEnd: is -9223372036854775808 ms from 1970, must be in the years 1 to 9999"},
		{"readAt", bson.Timestamp{T: 5}, "readAt: is of type timestamp, must be a date"},
	} {
		got := decode("job", 7, marshalled(t, storetest.Grant("job", 7), bson.M{c.field: c.value}))
		if want := (store.Record{WorkerType: "job", Seq: 7, Defect: c.want}); got != want {
			t.Errorf("decode() with %s = %.60v: %+v, want Defect %q", c.field, c.value, got, c.want)
		}
	}
}

func TestFieldsThatOccurTwiceDontCount(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"workerType": "workerType: occurs twice", "seq": "seq: occurs twice", "kind": "kind: occurs twice",
		"group": "group: occurs twice", "token": "token: occurs twice", "readAt": "readAt: occurs twice",
		"metadata": "", "worker": "", "fixedAt": "", "doneUntil": "", "attempt": "", "future": "",
	} {
		fields := append(encode(storetest.Grant("job", 7)), bson.E{Key: "future", Value: 1})
		for _, e := range fields {
			if e.Key == name {
				fields = append(fields, e)
			}
		}
		raw, err := bson.Marshal(fields)
		must(t, "Marshal()", err)
		got := decode("job", 7, raw)
		if got.Defect != want || want == "" && got.CheckEnvelope() != nil {
			t.Errorf("decode() with %s twice = %+v, want Defect %q", name, got, want)
		}
		if got.Metadata != "" && (name == "metadata" || want != "") {
			t.Errorf("decode() with %s twice: Metadata %q, want none", name, got.Metadata)
		}
	}
}

func TestDecodeOfBrokenBSON(t *testing.T) {
	t.Parallel()
	whole := marshalled(t, storetest.Grant("job", 7), nil)
	for n := range whole {
		if got := decode("job", 7, whole[:n]); got.Defect == "" {
			t.Errorf("decode() of the first %d of %d bytes = %+v, want a Defect", n, len(whole), got)
		}
	}
}
