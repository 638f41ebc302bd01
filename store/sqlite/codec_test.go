package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// column is the position of a column in a row.
func column(name string) int {
	for i, c := range columns {
		if c.name == name {
			return i
		}
	}
	panic(name)
}

// rowOf is a record as the driver reads it back.
func rowOf(t testing.TB, r store.Record) []any {
	t.Helper()
	row, err := encode(r)
	must(t, "encode()", err)
	row[column("priority")] = int64(r.Priority)
	return row
}

func TestWhatCannotBeDecodedIsADefect(t *testing.T) {
	for name, c := range map[string]struct {
		column string
		value  any
		want   string
	}{
		"no kind":              {"kind", nil, "kind is missing"},
		"no instance":          {"instanceId", nil, "instanceId is missing"},
		"no claim":             {"claim", nil, "claim is missing"},
		"no token":             {"token", nil, "token is missing"},
		"no window start":      {"windowStart", nil, "windowStart is missing"},
		"no window end":        {"windowEnd", nil, "windowEnd is missing"},
		"a token as text":      {"token", "7", "token is string, want an integer"},
		"a time as a fraction": {"readAt", 1.5, "readAt is float64, want an integer"},
		"a claim as bytes":     {"claim", []byte("c"), "claim is []uint8, want text"},
		"a group as a number":  {"group", int64(7), "group is int64, want text"},
		"a huge group":         {"group", int64(-1 << 24), "group has 16777216 bytes, at most 8192 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			row := rowOf(t, storetest.Grant("job", 7))
			row[column(c.column)] = c.value
			want := store.Record{WorkerType: "job", Seq: 7, Defect: c.want}
			documenttest.Equal(t, "decode()", decode(row), want)
		})
	}
	row := rowOf(t, storetest.Grant("job", 7))
	row[column("claim")], row[column("token")] = nil, nil
	documenttest.Equal(t, "decode() of two defects", decode(row).Defect, "claim is missing; token is missing")
}

func TestUnfitInformationCostsNoRecord(t *testing.T) {
	for name, unfit := range map[string]map[string]any{
		"of wrong types": {
			"priority": "high", "slotStart": "monday", "slotEnd": 1.5, "fixedAt": []byte("x"),
			"doneUntil": "yesterday", "attempt": 0.5,
			"schedule": int64(5), "metadata": []byte("m"), "worker": 0.5,
		},
		"not loaded": {
			"priority": nil, "slotStart": nil, "slotEnd": nil, "fixedAt": nil,
			"doneUntil": nil, "attempt": nil,
			"schedule": int64(-1 << 24), "metadata": int64(-8193), "worker": int64(-1 << 40),
		},
		"too long": {
			"priority": nil, "slotStart": int64(-1 << 63), "slotEnd": int64(1<<63 - 1), "fixedAt": int64(1 << 60),
			"doneUntil": int64(1 << 60), "attempt": int64(1<<32 + 5),
			"schedule": strings.Repeat("s", 513), "metadata": strings.Repeat("m", store.MaxMetadata+1),
			"worker": `{"host":"` + strings.Repeat("h", 1025) + `","version":"` + strings.Repeat("v", 1025) + `"}`,
		},
		"bad text": {
			"priority": nil, "slotStart": nil, "slotEnd": nil, "fixedAt": nil,
			"doneUntil": int64(-1 << 63), "attempt": int64(-1),
			"schedule": "\xff", "metadata": "a\x00", "worker": "\xff",
		},
	} {
		want := storetest.Grant("job", 7)
		row := rowOf(t, want)
		for name, v := range unfit {
			row[column(name)] = v
		}
		want.Priority, want.SlotStart, want.SlotEnd, want.FixedAt = 0, time.Time{}, time.Time{}, time.Time{}
		want.DoneUntil, want.Attempt = time.Time{}, 0
		want.Schedule, want.Metadata, want.Worker = "", "", store.Worker{}
		if got := decode(row); got != want || got.CheckEnvelope() != nil {
			t.Errorf("decode() of information that is %s = %.400s, want the envelope alone, %+v", name, fmt.Sprintf("%+v", got), want)
		}
	}
}
