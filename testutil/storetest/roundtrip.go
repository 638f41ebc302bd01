package storetest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// The first and the last time that a record may have, in the form in which it is stored, and
// times beyond them.
var (
	firstTime  = time.Date(1, time.January, 1, 0, 0, 0, 1e6, time.UTC)
	lastTime   = time.Date(9999, time.December, 31, 23, 59, 59, 999e6, time.UTC)
	beyondTime = []time.Time{
		lastTime.Add(time.Millisecond), time.Date(10_000, time.July, 1, 0, 0, 0, 0, time.UTC), time.Date(123_456, time.July, 1, 0, 0, 0, 0, time.UTC),
		// In the year 10000 of their zone, or of UTC.
		time.Date(9999, time.December, 31, 23, 0, 0, 0, time.FixedZone("west", -2*3600)),
		time.Time{}.Add(-time.Millisecond), time.Date(0, time.July, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, time.July, 1, 0, 0, 0, 0, time.UTC),
	}
)

// times are the times of a record, by the names of their fields.
var times = []struct {
	name string
	of   func(r *store.Record) *time.Time
}{
	{"slotStart", func(r *store.Record) *time.Time { return &r.SlotStart }},
	{"slotEnd", func(r *store.Record) *time.Time { return &r.SlotEnd }},
	{"windowStart", func(r *store.Record) *time.Time { return &r.WindowStart }},
	{"windowEnd", func(r *store.Record) *time.Time { return &r.WindowEnd }},
	{"fixedAt", func(r *store.Record) *time.Time { return &r.FixedAt }},
	{"readAt", func(r *store.Record) *time.Time { return &r.ReadAt }},
	{"doneUntil", func(r *store.Record) *time.Time { return &r.DoneUntil }},
}

// change makes a grant of "job", Seq 1, that differs from the usual one.
func change(f func(r *store.Record)) store.Record {
	r := Grant("job", 1)
	f(&r)
	return r
}

// roundTrip appends a record and reads it by another handle in both ways.
func roundTrip(t *testing.T, b *bench, r store.Record) store.Record {
	t.Helper()
	add(t, b, r)
	other := b.handle(t)
	got := get(t, other, r.WorkerType, r.Seq)
	wantRecord(t, "Get", got, r)
	newest := tail(t, other, r.WorkerType, 1)
	if len(newest) != 1 {
		t.Fatalf("Tail(%q, 1) = %d records, want 1", r.WorkerType, len(newest))
	}
	wantRecord(t, "Tail", newest[0], r)
	return got
}

// same is a case in which a record must come back as it was appended.
func same(name string, f func(r *store.Record)) testCase {
	return testCase{name, func(t *testing.T, b *bench) { roundTrip(t, b, change(f)) }}
}

var roundTripCases = []testCase{
	same("every field comes back, with a group", func(r *store.Record) { r.Group, r.Spared, r.Work = "eu-west", r.Attempt, "report.sh 1f2e3d4c" }),
	same("every field comes back, without a group", func(*store.Record) {}),
	same("optional fields come back empty", func(r *store.Record) {
		r.Group, r.Schedule, r.Metadata, r.Worker, r.Priority = "", "", "", store.Worker{}, 0
		r.SlotStart, r.SlotEnd = time.Time{}, time.Time{}
		r.FixedAt, r.ReadAt = time.Time{}, time.Time{}
		r.DoneUntil, r.Attempt = time.Time{}, 0
	}),
	same("text in any script comes back, and what looks like code stays text", func(r *store.Record) {
		r.InstanceID = "работник-工人-عامل-🦫-é-e\u0301"
		r.Group = `'; DROP TABLE records; --`
		r.Schedule = `cron 0 */2 * * * "Zürich" \ \\ %s {{.}}`
		r.Metadata = "line 1\r\nline 2\ttab \u2028 {\"$where\": \"1\"} null \U0001F9AB '' \"\" \\u0000"
		r.Worker = store.Worker{Host: "höst", PID: math.MaxInt32, Version: "v1.2.3-rc.1+dirty"}
	}),
	same("metadata of 8 KiB comes back", func(r *store.Record) {
		r.Metadata = strings.Repeat("0123456789abcdeé", 1<<9)[:store.MaxMetadata-1] + "."
	}),
	same("metadata of 8 KiB in bytes beyond ASCII comes back", func(r *store.Record) {
		r.Metadata = strings.Repeat("🦫", store.MaxMetadata/4)
	}),
	same("labels of the largest size come back", func(r *store.Record) {
		r.WorkerType = strings.Repeat("t", 63)
		r.InstanceID = strings.Repeat("i", 256)
		r.Group = strings.Repeat("g", 256)
		r.Schedule = strings.Repeat("s", 512)
		r.Claim = strings.Repeat("c", 64)
		r.Kind = store.Kind(strings.Repeat("k", 32))
	}),
	same("a release with an empty window comes back", func(r *store.Record) {
		r.Kind = store.KindRelease
		r.WindowEnd = r.WindowStart
	}),
	same("a done with an empty window comes back, and what it tells", func(r *store.Record) {
		r.Kind = store.KindDone
		r.WindowStart = r.WindowEnd
		r.DoneUntil = r.SlotEnd
	}),
	same("a kind that this version doesn't know can be appended", func(r *store.Record) {
		r.Kind = "pause"
		r.WindowEnd = r.WindowStart
	}),
	same("a window of 366 days in 2099 comes back", func(r *store.Record) {
		r.WindowStart = time.Date(2099, time.January, 1, 0, 0, 0, 0, time.UTC)
		r.WindowEnd = r.WindowStart.Add(366 * 24 * time.Hour)
		r.SlotStart, r.SlotEnd = r.WindowStart, r.WindowEnd
		r.Token = r.WindowStart.UnixMilli()
	}),
	same("a window of 1 ms comes back", func(r *store.Record) {
		r.WindowStart = r.WindowStart.Add(999 * time.Millisecond)
		r.WindowEnd = r.WindowStart.Add(time.Millisecond)
	}),
	same("a token beyond 32 bits and below 2^53 is exact", func(r *store.Record) { r.Token = 1<<53 - 3 }),
	same("a DoneUntil before 1970 comes back", func(r *store.Record) { r.DoneUntil = store.FromMillis(-1) }),
	same("a DoneUntil of 1970 is not none", func(r *store.Record) { r.DoneUntil = store.FromMillis(0) }),
	same("the largest Attempt comes back", func(r *store.Record) { r.Attempt, r.Spared = store.MaxAttempt, store.MaxAttempt }),
	{"an Attempt that no record may have is refused, and nothing is stored", func(t *testing.T, b *bench) {
		for _, attempt := range []int{-1, math.MinInt32, store.MaxAttempt + 1, math.MaxInt32} {
			r := change(func(r *store.Record) { r.Attempt = attempt })
			if err := b.Append(t.Context(), r); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Append() with an Attempt of %d = %v, want ErrInvalid", attempt, err)
			}
		}
		wantSeqs(t, "Tail", tail(t, b, "job", 9))
	}},
	same("orders come back, of a kind that this version doesn't know, too", func(r *store.Record) {
		r.Kind, r.WindowStart = store.KindOrder, r.WindowEnd
		r.Orders = `[{"kind":"pause","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z","now":true,"by":"ann \\ \"<é>\" 🦫","why":"x & y"},` +
			`{"kind":"hologram","target":"t","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z"}]`
	}),
	same("orders of the largest size come back", func(r *store.Record) { r.Orders = largestOrders }),
	same("the newest done slot comes back, with what this version doesn't know of it", func(r *store.Record) {
		r.Done = `{"start":"2026-03-02T00:00:00.000Z","end":"2026-03-03T00:00:00.000Z","zone":"Europe/Berlin","offset":3600,"moon":"\"<é>\" 🦫"}`
	}),
	{"a done slot that no record may have is refused, and nothing is stored", func(t *testing.T, b *bench) {
		for _, text := range unfitDone {
			r := change(func(r *store.Record) { r.Done = text })
			if err := b.Append(t.Context(), r); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Append() with the done slot %.60q = %v, want ErrInvalid", text, err)
			}
		}
		wantSeqs(t, "Tail", tail(t, b, "job", 9))
	}},
	{"orders that no record may have are refused, and nothing is stored", func(t *testing.T, b *bench) {
		for _, text := range unfitOrders {
			r := change(func(r *store.Record) { r.Orders = text })
			if err := b.Append(t.Context(), r); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Append() with orders %.60q = %v, want ErrInvalid", text, err)
			}
		}
		wantSeqs(t, "Tail", tail(t, b, "job", 9))
	}},
	same("the first and the last time that a record may have come back", func(r *store.Record) {
		r.WindowStart, r.WindowEnd = firstTime, lastTime
		r.SlotStart, r.SlotEnd, r.ReadAt, r.DoneUntil = firstTime, lastTime, lastTime, lastTime
		r.FixedAt = firstTime
	}),
	{"a time outside the years 1 to 9999 is refused with its field and value, and nothing is stored", func(t *testing.T, b *bench) {
		for _, at := range beyondTime {
			for _, c := range times {
				r := change(func(r *store.Record) { *c.of(r) = at })
				err := b.Append(within(t), r)
				if value := store.Format(at); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), value) {
					t.Errorf("Append() with a %s of %s = %v, want ErrInvalid that names both", c.name, value, err)
				}
			}
		}
		wantSeqs(t, "Tail", tail(t, b, "job", 9))
	}},
	{"a window that is none in whole milliseconds is refused, and nothing is stored", func(t *testing.T, b *bench) {
		for name, r := range map[string]store.Record{
			"a window within a millisecond":       change(func(r *store.Record) { r.WindowEnd = r.WindowStart.Add(time.Millisecond - 1) }),
			"a start that would be the zero time": change(func(r *store.Record) { r.WindowStart = time.Time{}.Add(1) }),
		} {
			if err := b.Append(within(t), r); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Append() with %s = %v, want ErrInvalid", name, err)
			}
		}
		wantSeqs(t, "Tail", tail(t, b, "job", 9))
	}},
	{"times are cut to milliseconds and come back in UTC", func(t *testing.T, b *bench) {
		zone := time.FixedZone("far east", 13*3600+45*60)
		fine := func(t time.Time) time.Time { return t.Add(7*time.Millisecond + 999_999*time.Nanosecond).In(zone) }
		r := change(func(r *store.Record) {
			r.SlotStart, r.SlotEnd = fine(r.SlotStart), fine(r.SlotEnd)
			r.WindowStart, r.WindowEnd = fine(r.WindowStart), fine(r.WindowEnd)
			r.FixedAt, r.ReadAt, r.DoneUntil = fine(r.FixedAt), fine(r.ReadAt), fine(r.DoneUntil)
		})
		got := roundTrip(t, b, r)
		if want := Grant("job", 1).WindowStart.Add(7 * time.Millisecond); !got.WindowStart.Equal(want) {
			t.Errorf("WindowStart = %v, want %v: cut, not rounded", got.WindowStart, want)
		}
		for name, at := range map[string]time.Time{"WindowEnd": got.WindowEnd, "FixedAt": got.FixedAt, "ReadAt": got.ReadAt, "SlotEnd": got.SlotEnd, "DoneUntil": got.DoneUntil} {
			if at.Location() != time.UTC {
				t.Errorf("%s = %v, want UTC", name, at)
			}
		}
	}},
}

// unfitDone are texts that no record may have as its newest done slot.
var unfitDone = []string{
	"yesterday",
	`{"start":"2026-03-02T00:00:00.000Z","end":"2026-03-02T00:00:00.000Z"}`,
	`{"start":"2026-03-02T00:00:00.000Z","end":"2026-03-03T00:00:00.000Z"}` + strings.Repeat(" ", store.MaxDone),
}

// orders is the text of so many pauses, the last of which has a reason.
func orders(count int, why string) string {
	one := `{"kind":"pause","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z"}`
	last := strings.TrimSuffix(one, "}") + fmt.Sprintf(`,"why":%q}`, why)
	return "[" + strings.Repeat(one+",", count-1) + last + "]"
}

// largestOrders have as many bytes as a record may: quotes take the most room where a store
// keeps them within another text.
var largestOrders = func() string {
	quoted := strings.Repeat(`\"`, store.MaxOrderText)
	one := `{"kind":"prefer","target":"` + quoted + `","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z","by":"` + quoted + `"}`
	text := "[" + one + `,{"kind":"pause","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z","by":"` + quoted + `"`
	return text + strings.Repeat(" ", store.MaxOrders-len(text)-2) + "}]"
}()

// unfitOrders are texts that no record may have as its orders.
var unfitOrders = []string{
	orders(store.MaxOrderCount+1, ""),
	orders(1, strings.Repeat("w", store.MaxOrderText+1)),
	orders(1, "two\nlines"),
	orders(1, "") + strings.Repeat(" ", store.MaxOrders),
	"[]",
	"pause",
	`[{"kind":"pause","until":"2026-03-02T02:00:00.000Z"}]`,
	`[{"kind":"","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z"}]`,
}
