package history_test

import (
	"testing"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// What workers don't obey, what an operator ends, and what leaves them nothing to claim.
func TestReadOfPoisonAndOverrides(t *testing.T) {
	minutes, part, grant, releaseOf, doneBy, noon := recordtest.Minutes, recordtest.Part, recordtest.Grant, recordtest.Release, recordtest.Done, recordtest.Noon
	a, b, c := grant(1, 0, "a"), grant(2, 1, "b"), grant(3, 2, "c")
	// overridden is an operator's record, as of a minute of a's slot.
	overridden := func(seq int64, at float64, why string) store.Record {
		return changed(part(seq, a, at, at), func(r *store.Record) {
			r.Kind, r.Claim, r.InstanceID, r.Metadata, r.Token, r.ReadAt = store.KindOverride, "override", "op", why, b.Token+1, minutes(at)
		})
	}
	wantRead(t, map[string]reading{
		"a window that leaves nothing to claim for long": {
			records: []store.Record{a, changed(b, func(r *store.Record) { r.WindowEnd = r.WindowEnd.AddDate(0, 0, 30) })}, now: minutes(6),
			want: []string{"12:00 expired a -9.2s", "12:05 held b -9.2s (nothing to claim until 2026-04-01T12:10:00.000Z)"},
		},
		"slots that are done long before": {
			records: []store.Record{a, changed(b, func(r *store.Record) { r.Attempt, r.DoneUntil = 1, r.WindowEnd.AddDate(0, 0, 30) })}, now: minutes(6),
			want: []string{"12:00 expired a -9.2s", "12:05 held b -9.2s (nothing to claim until 2026-04-01T12:10:00.000Z)"},
		},
		"slots of jobs that a stranger says are done": {
			records: []store.Record{changed(a, func(r *store.Record) { r.Attempt = 1 }), changed(b, func(r *store.Record) { r.DoneUntil = r.WindowEnd.AddDate(0, 0, 30) })}, now: minutes(6),
			want: []string{"12:00 failed a -9.2s (its worker died)", "12:05 held b -9.2s (nothing to claim until 2026-04-01T12:10:00.000Z)"},
		},
		"slots that are done long before, of workers without jobs": {
			records: []store.Record{
				changed(a, func(r *store.Record) { r.Attempt, r.DoneUntil = 1, minutes(0).AddDate(0, 0, 30) }),
				changed(b, func(r *store.Record) { r.DoneUntil = minutes(0).AddDate(0, 0, 30) }),
			}, now: minutes(6),
			want: []string{"12:00 failed a -9.2s (its worker died)", "12:05 held b -9.2s"},
		},
		"a long slot of a schedule that this version can't read": {
			records: []store.Record{changed(a, func(r *store.Record) {
				r.WindowEnd, r.SlotEnd, r.Schedule = r.WindowEnd.AddDate(0, 0, 6), r.WindowEnd.AddDate(0, 0, 6), "each week"
			})}, now: minutes(6),
			want: []string{"12:00 held a -9.2s"},
		},
		"more than a long slot of such a schedule": {
			records: []store.Record{changed(a, func(r *store.Record) {
				r.WindowEnd, r.SlotEnd, r.Schedule = r.WindowEnd.AddDate(0, 0, 30), r.WindowEnd.AddDate(0, 0, 6), "each week"
			})}, now: minutes(6),
			want: []string{"12:00 held a -9.2s (nothing to claim until 2026-04-01T12:05:00.000Z)"},
		},
		"a window of a year above a free key": {
			records: []store.Record{a, changed(b, func(r *store.Record) { r.Seq, r.WindowEnd = 5, r.WindowEnd.AddDate(1, 0, 0) })}, now: minutes(6),
			want: []string{"12:00 expired a -9.2s", "12:05 poison b (a key below it is free, so that workers go on there)", "12:05 free"},
		},
		"poison above a free key": {
			records: []store.Record{a, {WorkerType: "export", Seq: 5, Defect: "no token"}, {WorkerType: "export", Defect: "no number"}}, now: minutes(1),
			want: []string{
				"12:00 held a -9.2s", "00:00 poison (a key below it is free, so that workers go on there: no token)", "00:00 poison (no number)",
			},
		},
		"a long slot that is like all others": {
			records: []store.Record{changed(a, func(r *store.Record) { r.WindowEnd, r.Schedule = r.WindowEnd.AddDate(0, 0, 6), "every 168h" })}, now: minutes(6),
			want: []string{"12:00 held a -9.2s"},
		},
		"a release of something else changes nothing": {
			records: []store.Record{a, b, releaseOf(a, 3, minutes(6))}, now: minutes(6),
			want: []string{
				"12:00 expired a -9.2s", "12:05 held b -9.2s",
				"12:00 poison a (it is not of the term in seq 2, and is no grant)",
			},
		},
		"what has the claim of a term, and is no extension of it": {
			records: []store.Record{a, changed(a, func(r *store.Record) {
				r.Seq, r.InstanceID, r.WindowEnd, r.Token = 2, "evil", r.WindowEnd.AddDate(0, 0, 30), r.Token+1
			})}, now: minutes(6),
			want: []string{
				"12:00 expired a -9.2s", "12:00 poison evil (it is no extension of the term in seq 1, and has its claim)",
				"12:05 free",
			},
		},
		"an override of a lease, and of the next one": {
			records: []store.Record{a, b, overridden(3, 4.9, "its host is gone"), changed(c, func(r *store.Record) { r.Seq = 4 })}, now: minutes(11),
			want: []string{
				"12:00 overridden a -9.2s (at +4m54s)", "12:05 overridden b -9.2s (at -6.0s)",
				"12:00 override op (as of 2026-03-02T12:04:54.000Z: its host is gone)", "12:05 missed", "12:10 held c -9.2s",
			},
		},
		"an override of what left nothing to claim": {
			records: []store.Record{changed(a, func(r *store.Record) { r.WindowEnd = r.WindowEnd.AddDate(0, 0, 30) }), overridden(2, 7, "")}, now: minutes(16),
			want: []string{
				"12:00 overridden a -9.2s (at +7m0s)", "12:00 override op (as of 2026-03-02T12:07:00.000Z)",
				"12:10 missed", "12:15 free",
			},
		},
		"an override of what is over": {
			records: []store.Record{a, overridden(2, 7, "")}, now: minutes(8),
			want: []string{"12:00 expired a -9.2s", "12:00 override op (as of 2026-03-02T12:07:00.000Z)", "12:05 free"},
		},
		"what an override had opened is done, and was released": {
			records: []store.Record{
				a, doneBy(a, 2, a.SlotEnd, minutes(1)), changed(releaseOf(a, 3, minutes(1.1)), func(r *store.Record) { r.DoneUntil = a.SlotEnd }),
				changed(overridden(4, 2, ""), func(r *store.Record) { r.DoneUntil = a.SlotEnd }),
			}, now: minutes(4),
			want: []string{"12:00 done a -9.2s released 12:01:06 (at +1m0s)", "12:00 override op (as of 2026-03-02T12:02:00.000Z)"},
		},
		"an override that nobody obeys": {
			records: []store.Record{a, changed(overridden(2, 2, ""), func(r *store.Record) { r.Token = a.Token })}, now: minutes(4),
			want: []string{"12:00 held a -9.2s", "12:00 poison op (its token 1772452800000 is not above that of seq 1, 1772452800000)"},
		},
		"an override above poison whose token was too far ahead": {
			records: []store.Record{
				changed(a, func(r *store.Record) { r.Token = minutes(20).UnixMilli() }), changed(overridden(2, 2, ""), func(r *store.Record) { r.Token = minutes(2).UnixMilli() }),
				changed(c, func(r *store.Record) { r.Token = r.WindowStart.UnixMilli() }),
			}, now: minutes(11),
			want: []string{"12:00 overridden a -9.2s (at +2m0s)", "12:00 override op (as of 2026-03-02T12:02:00.000Z)", "12:05 missed", "12:10 held c -9.2s"},
		},
		"a reset": {
			records: []store.Record{changed(a, func(r *store.Record) {
				r.Kind, r.WindowEnd, r.Metadata = store.KindReset, r.WindowStart, "supersedes seq 0"
			}), b}, now: minutes(6),
			want: []string{"12:00 reset a (supersedes seq 0)", "12:05 held b -9.2s"},
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
				"12:10 poison c (window is 17544h0m0s long, more than 8784h0m0s)",
				"12:15 poison d (window starts at 2099-03-02T12:00:00.000Z, more than 10m0s ahead of store time)",
				"12:20 poison e (token 1803988800000 is more than 10m0s ahead of store time)",
				"12:25 held f -9.2s", "00:00 poison (seq -1 can't be followed)",
			},
		},
		"the last seq that a store follows, which the engine refuses": {
			records: []store.Record{a, changed(b, func(r *store.Record) { r.Seq = store.MaxSeq })}, now: minutes(6),
			want: []string{"12:00 expired a -9.2s", "12:05 poison b (a key below it is free, so that workers go on there)", "12:05 free"},
		},
		"the last seq of a full ledger": {
			records: []store.Record{changed(a, func(r *store.Record) { r.Seq = store.MaxSeq - 1 }), changed(b, func(r *store.Record) { r.Seq = store.MaxSeq })}, now: minutes(6),
			want: []string{"12:00 expired a -9.2s", "12:05 poison b (the ledger is full: no seq is left)", "12:05 free"},
		},
	})
}
