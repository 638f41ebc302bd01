package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/store"
)

// rowText is what matters of a row.
func rowText(e entry) string {
	end := ""
	if e.Slots > 0 {
		end = "…" + e.Slot.End.Format("15:04")
	}
	text := fmt.Sprintf("%s%s %s %s", e.Slot.Start.Format("15:04"), end, e.State, e.Record.InstanceID)
	if e.Known {
		text += " " + relative(e.Claimed)
	}
	if !e.Released.IsZero() {
		text += " released " + e.Released.Format("15:04:05")
	}
	if e.Extended > 0 {
		text += fmt.Sprintf(" ×%d to %s", e.Extended, e.Record.WindowEnd.Format("15:04:05"))
	}
	if e.Note != "" {
		text += " (" + e.Note + ")"
	}
	return strings.Join(strings.Fields(text), " ")
}

// part is a grant of a part of a slot, in minutes after noon; onward is one of the
// slot that starts n slots after noon, by the same term.
func part(seq int64, g store.Record, from, to float64) store.Record {
	g.Seq = seq
	g.WindowStart, g.WindowEnd = noon.Add(time.Duration(from*float64(time.Minute))), noon.Add(time.Duration(to*float64(time.Minute)))
	return g
}

func onward(seq int64, g store.Record, n int, from, to float64) store.Record {
	next := grant(seq, n, g.InstanceID)
	next.Claim, next.Token = g.Claim, g.Token
	return part(seq, next, from, to)
}

// doneBy tells, under a grant, that the slot that ends at until is done.
func doneBy(g store.Record, seq int64, until, at time.Time) store.Record {
	g.Seq, g.Kind, g.WindowStart, g.DoneUntil, g.ReadAt = seq, store.KindDone, g.WindowEnd, until, at
	return g
}

func TestHistory(t *testing.T) {
	minutes := func(m float64) time.Time { return noon.Add(time.Duration(m * float64(time.Minute))) }
	changed := func(r store.Record, f func(*store.Record)) store.Record { f(&r); return r }
	a, b, c := grant(1, 0, "a"), grant(2, 1, "b"), grant(3, 2, "c")
	for name, test := range map[string]struct {
		records []store.Record // oldest first
		now     time.Time
		last    int
		want    []string
	}{
		"an empty ledger": {now: noon},
		"expired, held, upcoming": {
			records: []store.Record{a, b, c}, now: minutes(9.9),
			want: []string{"12:00 expired a -9.2s", "12:05 held b -9.2s", "12:10 upcoming c -9.2s"},
		},
		"a boundary belongs to the slot that starts": {
			records: []store.Record{a, b}, now: minutes(5),
			want: []string{"12:00 expired a -9.2s", "12:05 held b -9.2s"},
		},
		"only the last": {
			records: []store.Record{a, b, c}, now: minutes(9.9), last: 2,
			want: []string{"12:05 held b -9.2s", "12:10 upcoming c -9.2s"},
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
		"a release of something else changes nothing": {
			records: []store.Record{a, b, releaseOf(a, 3, minutes(6))}, now: minutes(6),
			want: []string{"12:00 expired a -9.2s", "12:05 held b -9.2s"},
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
		"a schedule that this version can't read tells of no gaps": {
			records: []store.Record{changed(a, func(r *store.Record) { r.Schedule = "moon full" })}, now: minutes(60),
			want: []string{"12:00 expired a -9.2s"},
		},
		"extensions within a slot are one row": {
			records: []store.Record{part(1, a, 0, 1), part(2, a, 1, 2), part(3, a, 2, 3)}, now: minutes(2.5),
			want: []string{"12:00 held a -9.2s ×2 to 12:03:00"},
		},
		"a slot that was taken over in its middle": {
			records: []store.Record{part(1, a, 0, 1), part(2, a, 1, 2), part(3, changed(b, func(r *store.Record) {
				r.SlotStart, r.SlotEnd, r.Token, r.FixedAt = a.SlotStart, a.SlotEnd, minutes(2.1).UnixMilli(), minutes(2.0625)
			}), 2.1, 3)}, now: minutes(2.5),
			want: []string{"12:00 expired a -9.2s ×1 to 12:02:00 (to +2m0s)", "12:00 held b +2m3s (from +2m6s)"},
		},
		"taken over, and over": {
			records: []store.Record{part(1, a, 0, 1), part(2, changed(b, func(r *store.Record) {
				r.SlotStart, r.SlotEnd, r.Token, r.FixedAt = a.SlotStart, a.SlotEnd, minutes(1.1).UnixMilli(), minutes(1.1)
			}), 1.1, 2), part(3, changed(b, func(r *store.Record) {
				r.SlotStart, r.SlotEnd, r.Token, r.FixedAt = a.SlotStart, a.SlotEnd, minutes(1.1).UnixMilli(), minutes(1.9)
			}), 2, 3)}, now: minutes(4.5),
			want: []string{"12:00 expired a -9.2s (to +1m0s)", "12:00 expired b +1m6s ×1 to 12:03:00 (from +1m6s to +3m0s)"},
		},
		"a term that goes on has a row for each slot": {
			records: []store.Record{part(1, a, 0, 4), part(2, a, 4, 5), onward(3, a, 1, 5, 9), onward(4, a, 1, 9, 10), onward(5, a, 2, 10, 14)}, now: minutes(9.9),
			want: []string{"12:00 expired a -9.2s ×1 to 12:05:00", "12:05 held a -9.2s ×1 to 12:10:00", "12:10 upcoming a -9.2s"},
		},
		"a term that went on, and was released": {
			records: []store.Record{part(1, a, 0, 5), onward(2, a, 1, 5, 10), releaseOf(onward(2, a, 1, 5, 10), 3, minutes(4.9))}, now: minutes(4.95),
			want: []string{"12:00 released a -9.2s released 12:04:54 (at +4m54s)", "12:05 released a -9.2s released 12:04:54 (before it began)"},
		},
		"taken over, and released": {
			records: []store.Record{part(1, a, 0, 1), part(2, changed(b, func(r *store.Record) {
				r.SlotStart, r.SlotEnd, r.Token, r.FixedAt = a.SlotStart, a.SlotEnd, minutes(1.1).UnixMilli(), minutes(1.1)
			}), 1.1, 5), releaseOf(b, 3, minutes(3))}, now: minutes(4.5),
			want: []string{"12:00 expired a -9.2s (to +1m0s)", "12:00 released b +1m6s released 12:03:00 (from +1m6s at +3m0s)"},
		},
		"an extension is all that was read": {
			records: []store.Record{part(8, a, 2, 3), part(9, a, 3, 4)}, now: minutes(4.5),
			want: []string{"12:00 expired a ×1 to 12:04:00 (from before +2m0s to +4m0s)"},
		},
		"a record of another kind between two extensions": {
			records: []store.Record{part(1, a, 0, 1), changed(part(2, a, 1, 1), func(r *store.Record) { r.Kind = "audit" }), part(3, a, 1, 2)}, now: minutes(1.5),
			want: []string{"12:00 held a -9.2s ×1 to 12:02:00", "12:00 audit a"},
		},
		"two terms of one worker in a slot": {
			records: []store.Record{part(1, a, 0, 1), changed(part(2, a, 1.5, 5), func(r *store.Record) { r.Claim, r.Token = "again", minutes(1.5).UnixMilli() })}, now: minutes(2),
			want: []string{"12:00 expired a -9.2s (to +1m0s)", "12:00 held a -9.2s (from +1m30s)"},
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
		"done by whoever took over": {
			records: []store.Record{part(1, a, 0, 1), part(2, changed(b, func(r *store.Record) {
				r.SlotStart, r.SlotEnd, r.Token, r.FixedAt = a.SlotStart, a.SlotEnd, minutes(1.1).UnixMilli(), minutes(1.1)
			}), 1.1, 2), doneBy(changed(b, func(r *store.Record) { r.SlotStart, r.SlotEnd = a.SlotStart, a.SlotEnd }), 3, a.SlotEnd, minutes(1.5))}, now: minutes(4),
			want: []string{"12:00 expired a -9.2s (to +1m0s)", "12:00 done b +1m6s (from +1m6s at +1m30s)"},
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
		"a reset": {
			records: []store.Record{changed(a, func(r *store.Record) {
				r.Kind, r.WindowEnd, r.Metadata = store.KindReset, r.WindowStart, "supersedes seq 0"
			}), b}, now: minutes(6),
			want: []string{"12:00 reset a (supersedes seq 0)", "12:05 held b -9.2s"},
		},
		"a grant with more information than this version writes": {
			records: []store.Record{changed(a, func(r *store.Record) { r.Metadata = strings.Repeat("m", 9<<10) })}, now: minutes(1),
			want: []string{"12:00 held a -9.2s"},
		},
		"poison of all sorts": {
			records: []store.Record{
				{WorkerType: "export", Seq: 1, Defect: "no token"},
				changed(b, func(r *store.Record) { r.Token = 0 }),
				changed(c, func(r *store.Record) { r.WindowEnd = r.WindowStart.AddDate(2, 0, 0) }),
				changed(grant(4, 3, "d"), func(r *store.Record) {
					r.WindowStart, r.WindowEnd = noon.AddDate(73, 0, 0), noon.AddDate(73, 0, 1)
				}),
				changed(grant(5, 4, "e"), func(r *store.Record) { r.Token = noon.AddDate(1, 0, 0).UnixMilli() }),
				grant(6, 5, "f"),
				{WorkerType: "export", Defect: "seq -1 can't be followed"},
			},
			now: minutes(26),
			want: []string{
				"00:00 poison (no token)", "12:05 poison b (token 0: must be positive)",
				"12:10 poison c (window is 17544h0m0s long, more than 366 days)",
				"12:15 poison d (window starts at 2099-03-02T12:00:00.000Z, more than 1h ahead of store time)",
				"12:20 poison e (token 1803988800000 is more than 1h ahead of store time)",
				"12:25 held f -9.2s", "00:00 poison (seq -1 can't be followed)",
			},
		},
		"a grant without its slot is shown by its window": {
			records: []store.Record{changed(a, func(r *store.Record) { r.SlotStart, r.SlotEnd, r.FixedAt = time.Time{}, time.Time{}, time.Time{} })}, now: minutes(1),
			want: []string{"12:00 held a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tail := slices.Clone(test.records)
			slices.Reverse(tail)
			last := test.last
			if last == 0 {
				last = 100
			}
			var got []string
			for _, e := range history(tail, test.now, last) {
				got = append(got, rowText(e))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("history() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRelativeTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "+0ms", -743 * time.Millisecond: "-743ms", -9234 * time.Millisecond: "-9.2s", 59999 * time.Millisecond: "+59.9s",
		-72 * time.Second: "-1m12s", 26 * time.Hour: "+26h0m0s",
	} {
		if got := relative(d); got != want {
			t.Errorf("relative(%v) = %q, want %q", d, got, want)
		}
	}
}
