package history_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// rowText is what matters of an entry.
func rowText(e history.Entry) string {
	end := ""
	if e.Count > 1 {
		end = "…" + e.Slot.End.Format("15:04")
	}
	text := fmt.Sprintf("%s%s %s %s", e.Slot.Start.Format("15:04"), end, e.State, e.Record.InstanceID)
	if e.ClaimKnown {
		text += " " + history.Relative(e.Claimed)
	}
	if !e.ReleasedAt.IsZero() {
		text += " released " + e.ReleasedAt.Format("15:04:05")
	}
	if e.Extensions > 0 {
		text += fmt.Sprintf(" ×%d to %s", e.Extensions, e.Window.End.Format("15:04:05"))
	}
	if note := e.Note(); note != "" {
		text += " (" + note + ")"
	}
	return strings.Join(strings.Fields(text), " ")
}

// reading is what Read is to make of some records.
type reading struct {
	records  []store.Record // oldest first
	now      time.Time
	schedule slots.Schedule
	want     []string
}

// wantRead demands what Read makes of records in either order.
func wantRead(t *testing.T, tests map[string]reading) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tail := slices.Clone(test.records)
			slices.Reverse(tail)
			for order, records := range map[string][]store.Record{"newest": tail, "oldest": test.records} {
				if keyed(records) < 2 && order == "oldest" {
					continue // The order doesn't show.
				}
				before := slices.Clone(records)
				var got []string
				for _, e := range history.Read(records, test.now, test.schedule) {
					got = append(got, rowText(e))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("Read() of records, the %s first (-want +got):\n%s", order, diff)
				}
				if diff := cmp.Diff(before, records); diff != "" {
					t.Errorf("Read() changed its argument (-before +after):\n%s", diff)
				}
			}
		})
	}
}

// changed is a record with something changed.
func changed(r store.Record, f func(*store.Record)) store.Record { f(&r); return r }

func TestRead(t *testing.T) {
	minutes, part, grant, releaseOf, doneBy, noon := recordtest.Minutes, recordtest.Part, recordtest.Grant, recordtest.Release, recordtest.Done, recordtest.Noon
	a, b, c := grant(1, 0, "a"), grant(2, 1, "b"), grant(3, 2, "c")
	// over is a part of a's slot that b has taken over.
	over := func(seq int64, token, fixed, from, to float64) store.Record {
		return part(seq, changed(b, func(r *store.Record) {
			r.SlotStart, r.SlotEnd, r.Token, r.FixedAt = a.SlotStart, a.SlotEnd, minutes(token).UnixMilli(), minutes(fixed)
		}), from, to)
	}
	wantRead(t, map[string]reading{
		"an empty ledger": {now: noon},
		"expired, held, upcoming": {
			records: []store.Record{a, b, c}, now: minutes(9.9),
			want: []string{"12:00 expired a -9.2s", "12:05 held b -9.2s", "12:10 upcoming c -9.2s"},
		},
		"a boundary belongs to the slot that starts": {
			records: []store.Record{a, b}, now: minutes(5),
			want: []string{"12:00 expired a -9.2s", "12:05 held b -9.2s"},
		},
		"released in its middle, and idle then": {
			records: []store.Record{a, releaseOf(a, 2, minutes(2))}, now: minutes(3),
			want: []string{"12:00 released a -9.2s released 12:02:00 (at +2m0s)"},
		},
		"released before it began": {
			records: []store.Record{a, b, releaseOf(b, 3, b.WindowStart.Add(time.Millisecond))}, now: minutes(4.9),
			want: []string{"12:00 held a -9.2s", "12:05 released b -9.2s released 12:05:00 (before it began)"},
		},
		"the rest of a released slot taken by another": {
			records: []store.Record{a, releaseOf(a, 2, minutes(2)), changed(grant(3, 0, "z"), func(r *store.Record) {
				r.WindowStart, r.FixedAt, r.Token = minutes(2.5), minutes(2.5), r.Token+1
			})},
			now:  minutes(3),
			want: []string{"12:00 released a -9.2s released 12:02:00 (at +2m0s)", "12:00 held z +2m30s (from +2m30s)"},
		},
		"missed slots between two": {
			records: []store.Record{a, grant(2, 3, "b")}, now: minutes(16),
			want: []string{"12:00 expired a -9.2s", "12:05 missed", "12:10 missed", "12:15 held b -9.2s"},
		},
		"many missed slots are one row": {
			records: []store.Record{a, grant(2, 5, "b")}, now: minutes(26),
			want: []string{"12:00 expired a -9.2s", "12:05…12:25 missed (4 slots)", "12:25 held b -9.2s"},
		},
		"missed up to now, and a slot that is still free": {
			records: []store.Record{a}, now: minutes(16),
			want: []string{"12:00 expired a -9.2s", "12:05 missed", "12:10 missed", "12:15 free"},
		},
		"missed by the schedule of the later record": {
			records: []store.Record{a, changed(grant(2, 4, "b"), func(r *store.Record) { r.Schedule = "every 10m" })}, now: minutes(21),
			want: []string{"12:00 expired a -9.2s", "12:10 missed", "12:20 held b -9.2s"},
		},
		"cron": {
			records: []store.Record{changed(a, func(r *store.Record) { r.Schedule = "cron */5 * * * *" })}, now: minutes(11),
			want: []string{"12:00 expired a -9.2s", "12:05 missed", "12:10 free"},
		},
		"a schedule that this version can't read shows no gaps": {
			records: []store.Record{changed(a, func(r *store.Record) { r.Schedule = "moon full" })}, now: minutes(60),
			want: []string{"12:00 expired a -9.2s"},
		},
		"a schedule that is given finds the missed slots": {
			records: []store.Record{changed(a, func(r *store.Record) { r.Schedule = "own" })}, now: minutes(16), schedule: slots.Must(slots.Every(5 * time.Minute)),
			want: []string{"12:00 expired a -9.2s", "12:05 missed", "12:10 missed", "12:15 free"},
		},
		"extensions within a slot are one row": {
			records: []store.Record{part(1, a, 0, 1), part(2, a, 1, 2), part(3, a, 2, 3)}, now: minutes(2.5),
			want: []string{"12:00 held a -9.2s ×2 to 12:03:00"},
		},
		"a slot that was taken over in its middle": {
			records: []store.Record{part(1, a, 0, 1), part(2, a, 1, 2), over(3, 2.1, 2.0625, 2.1, 3)}, now: minutes(2.5),
			want: []string{"12:00 expired a -9.2s ×1 to 12:02:00 (to +2m0s, its worker fell silent)", "12:00 held b +2m3s (from +2m6s)"},
		},
		"taken over, and over": {
			records: []store.Record{part(1, a, 0, 1), over(2, 1.1, 1.1, 1.1, 2), over(3, 1.1, 1.9, 2, 3)}, now: minutes(4.5),
			want: []string{"12:00 expired a -9.2s (to +1m0s, its worker fell silent)", "12:00 expired b +1m6s ×1 to 12:03:00 (from +1m6s to +3m0s, its worker fell silent)"},
		},
		"a term that goes on has a row for each slot": {
			records: []store.Record{part(1, a, 0, 4), part(2, a, 4, 5), recordtest.NextSlot(3, a, 1, 5, 9), recordtest.NextSlot(4, a, 1, 9, 10), recordtest.NextSlot(5, a, 2, 10, 14)}, now: minutes(9.9),
			want: []string{"12:00 expired a -9.2s ×1 to 12:05:00", "12:05 held a -9.2s ×1 to 12:10:00", "12:10 upcoming a -9.2s"},
		},
		"a term that went on, and was released": {
			records: []store.Record{part(1, a, 0, 5), recordtest.NextSlot(2, a, 1, 5, 10), releaseOf(recordtest.NextSlot(2, a, 1, 5, 10), 3, minutes(4.9))}, now: minutes(4.95),
			want: []string{"12:00 released a -9.2s released 12:04:54 (at +4m54s)", "12:05 released a -9.2s released 12:04:54 (before it began)"},
		},
		"taken over, and released": {
			records: []store.Record{part(1, a, 0, 1), over(2, 1.1, 1.1, 1.1, 5), releaseOf(over(2, 1.1, 1.1, 1.1, 5), 3, minutes(3))}, now: minutes(4.5),
			want: []string{"12:00 expired a -9.2s (to +1m0s, its worker fell silent)", "12:00 released b +1m6s released 12:03:00 (from +1m6s, at +3m0s)"},
		},
		"an extension is all that was read": {
			records: []store.Record{part(8, a, 2, 3), part(9, a, 3, 4)}, now: minutes(4.5),
			want: []string{"12:00 expired a ×1 to 12:04:00 (from before +2m0s to +4m0s, its worker fell silent)"},
		},
		"a record of another kind between two extensions": {
			records: []store.Record{part(1, a, 0, 1), changed(part(2, a, 1, 1), func(r *store.Record) { r.Kind = "audit" }), part(3, a, 1, 2)}, now: minutes(1.5),
			want: []string{"12:00 held a -9.2s ×1 to 12:02:00", "12:00 audit a"},
		},
		"two terms of one worker in a slot": {
			records: []store.Record{part(1, a, 0, 1), changed(part(2, a, 1.5, 5), func(r *store.Record) { r.Claim, r.Token = "again", minutes(1.5).UnixMilli() })}, now: minutes(2),
			want: []string{"12:00 expired a -9.2s (to +1m0s, its worker fell silent)", "12:00 held a -9.2s (from +1m30s)"},
		},
		"a year of gaps is counted up to a bound": {
			records: []store.Record{a}, now: noon.AddDate(1, 0, 0),
			want: []string{"12:00 expired a -9.2s", "12:05…05:25 missed (and more: only 10000 were counted; 10000 slots)", "12:00 free"},
		},
		"a kind that this version doesn't know": {
			records: []store.Record{a, changed(a, func(r *store.Record) { r.Seq, r.Kind, r.WindowStart, r.Metadata = 2, "audit", r.WindowEnd, "42 rows" })}, now: minutes(1),
			want: []string{"12:00 held a -9.2s", "12:00 audit a (42 rows)"},
		},
		"done while the lease is in force": {
			records: []store.Record{a, doneBy(a, 2, a.SlotEnd, minutes(1))}, now: minutes(2),
			want: []string{"12:00 done a -9.2s (at +1m0s)"},
		},
		"done by the worker that took over": {
			records: []store.Record{part(1, a, 0, 1), over(2, 1.1, 1.1, 1.1, 2), doneBy(over(2, 1.1, 1.1, 1.1, 2), 3, a.SlotEnd, minutes(1.5))}, now: minutes(4),
			want: []string{"12:00 expired a -9.2s (to +1m0s, its worker fell silent)", "12:00 done b +1m6s (from +1m6s, at +1m30s)"},
		},
		"done, and released on the way out": {
			records: []store.Record{a, doneBy(a, 2, a.SlotEnd, minutes(1)), changed(releaseOf(a, 3, minutes(1.1)), func(r *store.Record) { r.DoneUntil = a.SlotEnd })}, now: minutes(4),
			want: []string{"12:00 done a -9.2s released 12:01:06 (at +1m0s)"},
		},
		"a slot that was done, as a later record repeats": {
			records: []store.Record{a, changed(b, func(r *store.Record) { r.DoneUntil = a.SlotEnd })}, now: minutes(6),
			want: []string{"12:00 done a -9.2s", "12:05 held b -9.2s"},
		},
		"that an earlier slot was done makes nothing of a missed one": {
			records: []store.Record{a, doneBy(a, 2, a.SlotEnd, minutes(1)), changed(grant(3, 2, "b"), func(r *store.Record) { r.DoneUntil = a.SlotEnd })}, now: minutes(11),
			want: []string{"12:00 done a -9.2s (at +1m0s)", "12:05 missed", "12:10 held b -9.2s"},
		},
		"a missed slot that was made up for": {
			records: []store.Record{a, grant(2, 2, "b"), doneBy(grant(2, 2, "b"), 3, minutes(10), minutes(10.5))}, now: minutes(11),
			want: []string{"12:00 expired a -9.2s", "12:05 done b (at +5m30s)", "12:10 held b -9.2s"},
		},
		"the last of many missed slots, made up for": {
			records: []store.Record{a, grant(2, 6, "b"), doneBy(grant(2, 6, "b"), 3, minutes(30), minutes(30.5))}, now: minutes(31),
			want: []string{"12:00 expired a -9.2s", "12:05…12:25 missed (4 slots)", "12:25 done b (at +5m30s)", "12:30 held b -9.2s"},
		},
		"a done record is all that was read": {
			records: []store.Record{doneBy(a, 9, a.SlotEnd, minutes(1))}, now: minutes(2),
			want: []string{"12:00 done a (at +1m0s)"},
		},
		"a done record of a schedule that this version can't read": {
			records: []store.Record{changed(doneBy(a, 9, minutes(4), minutes(1)), func(r *store.Record) { r.Schedule = "moon full" })}, now: minutes(2),
			want: []string{"00:00 done a"},
		},
		"a grant with more information than this version writes": {
			records: []store.Record{changed(a, func(r *store.Record) { r.Metadata = strings.Repeat("m", 9<<10) })}, now: minutes(1),
			want: []string{"12:00 held a -9.2s"},
		},
		"a grant without its slot is shown by its window": {
			records: []store.Record{changed(a, func(r *store.Record) { r.SlotStart, r.SlotEnd, r.FixedAt = time.Time{}, time.Time{}, time.Time{} })}, now: minutes(1),
			want: []string{"12:00 held a"},
		},
	})
}

// keyed is how many of the records have a Seq.
func keyed(records []store.Record) (n int) {
	for _, r := range records {
		if r.Seq != 0 {
			n++
		}
	}
	return n
}

func TestTheStructuredFieldsSayWhatTheNoteDoes(t *testing.T) {
	a := recordtest.Part(1, recordtest.Grant(1, 0, "a"), 0, 1)
	a.Attempt = 1
	b := recordtest.Part(2, recordtest.Grant(2, 0, "b"), 1.5, 3)
	b.Token, b.Attempt = a.Token+1, 2
	more := recordtest.Part(3, b, 3, 4)
	finished := recordtest.Done(more, 4, a.SlotEnd, recordtest.Minutes(3.5))
	got := history.Read([]store.Record{finished, more, b, a}, recordtest.Minutes(4.5), nil)
	want := []history.Entry{
		{
			Slot: slots.Slot{Start: recordtest.Noon, End: recordtest.Minutes(5)}, State: history.Expired, Count: 1, Record: a,
			Window: slots.Slot{Start: recordtest.Noon, End: recordtest.Minutes(1)}, Attempt: 1, Claimed: -9234 * time.Millisecond, ClaimKnown: true, Cause: store.WorkerDied, Written: a.ReadAt,
		},
		{
			Slot: slots.Slot{Start: recordtest.Noon, End: recordtest.Minutes(5)}, State: history.Done, Count: 1, Record: b,
			Window: slots.Slot{Start: recordtest.Minutes(1.5), End: recordtest.Minutes(4)}, Extensions: 1, NewestSeq: 3,
			Attempt: 2, Takeover: true, Claimed: -9234 * time.Millisecond, ClaimKnown: true, DoneAt: recordtest.Minutes(3.5), Written: b.ReadAt,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Read() (-want +got):\n%s", diff)
	}
	if late := got[1].Late(); late != 90*time.Second {
		t.Errorf("Late() = %v, want 1m30s", late)
	}
}

func TestRelative(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "+0ms", -743 * time.Millisecond: "-743ms", -9234 * time.Millisecond: "-9.2s", 59999 * time.Millisecond: "+59.9s",
		-72 * time.Second: "-1m12s", 26 * time.Hour: "+26h0m0s",
	} {
		if got := history.Relative(d); got != want {
			t.Errorf("Relative(%v) = %q, want %q", d, got, want)
		}
	}
}
