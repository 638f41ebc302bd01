package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Overlap is two holders at work at once. It can only happen beyond the assumptions of the
// protocol.
type Overlap struct {
	At           time.Duration
	Older, Newer string
	// Reported says that one of the two reported it in time. If a clock was wrong, the report is
	// that the store's time contradicts the worker's own (ClockJump); if a record was rolled
	// back, that the worker's record has vanished (Vanished). The report counts from the fault
	// until two seconds after the first answer of the store that shows it; time in which the
	// process doesn't run, or an observer keeps it, is added. An answer with the time shows the
	// fault if, by the process's own clock, its window was not in force when it worked. An
	// answer with records shows it if another record stands in the place of its own or begins
	// in its window, or if its own would be the newest.
	Reported bool
	// Deaf says that neither reported it and that neither could know: no answer that shows the
	// fault reached a process that had lived through it.
	Deaf bool

	older, newer *Lease
	windows      [2]Span // of the two, as they were known then
}

// undone is a record that was rolled back.
type undone struct {
	at     time.Duration
	record store.Record
}

// overlap notes two holders at work at once.
func (w *world) overlap(older, newer *Lease) {
	if !w.beyond {
		w.violate("two holders at work: %v, and before it %v", newer, older)
		return
	}
	w.overlaps = append(w.overlaps, &Overlap{
		At: w.now(), Older: older.String(), Newer: newer.String(), older: older, newer: newer,
		windows: [2]Span{{older.Start, older.End}, {newer.Start, newer.End}},
	})
}

// witness is one of the two of an overlap.
type witness struct {
	*Lease
	at     time.Duration // when it surely worked
	window Span
	record *landed // that it worked by
}

// judge decides at the end of the run which overlaps were reported. An overlap that no broken
// assumption explains is a violation.
func (w *world) judge() {
	for _, o := range w.overlaps {
		two := [2]witness{
			{o.older, o.At, o.windows[0], w.workedBy(o.older)},
			// It may have worked last before the other did again.
			{o.newer, o.newer.Began, o.windows[1], w.workedBy(o.newer)},
		}
		onset, wrong := time.Duration(0), false
		for _, x := range two {
			if at, ok := x.wrongSince(); ok {
				onset, wrong = max(onset, at), true
			}
		}
		tookBack, gone := w.tookBack(two)
		if !wrong && !gone {
			w.wrong(o.At, fmt.Sprintf("two holders at work, and nothing beyond the assumptions had happened to them: %s, and %s", o.Older, o.Newer))
			continue
		}
		o.Deaf = true
		for _, x := range two {
			if _, ok := x.wrongSince(); ok {
				by, knew := x.learns(x.times(), x.refuted)
				o.Reported = o.Reported || w.alarmed(x.p, Jump, onset, by)
				o.Deaf = o.Deaf && !knew
			}
			if gone {
				by, knew := x.learns(x.reads(), x.missed)
				o.Reported = o.Reported || w.alarmed(x.p, Rollback, tookBack, by)
				o.Deaf = o.Deaf && !knew
			}
		}
		o.Deaf = o.Deaf && !o.Reported
	}
}

// workedBy is the record of a lease, even if a worker of the same name had the same token.
func (w *world) workedBy(l *Lease) *landed {
	for _, g := range slices.Backward(w.ledgers[l.WorkerType].byToken[l.Token]) {
		if g.group == l.Group && (l.Group != "" || l.p.answers.own[g.claim]) {
			return g
		}
	}
	return nil
}

// learns is by when a witness reports the fault: when it has acted on the first answer that
// shows the fault to its process, or on the first answer at all if none does. knew reports
// whether one does.
func (x witness) learns(from []answer, shows func(answer) bool) (by time.Duration, knew bool) {
	i := slices.IndexFunc(from, shows)
	switch {
	case i >= 0:
		by = from[i].at
	case len(from) > 0:
		by = from[0].at
	default:
		return x.at, false
	}
	return x.p.minded(by), i >= 0
}

// alarmed reports whether a process raised an alarm in a stretch of time.
func (w *world) alarmed(p *Process, kind Fault, from, to time.Duration) bool {
	return slices.ContainsFunc(w.alarms, func(a alarm) bool {
		return a.by == p && a.kind == kind && from <= a.at && a.at <= to
	})
}

// wrongSince is since when the witness's time was wrong: since the latest jump of the store's
// clock, or freeze of its host, after its first answer with a time, or since it began, if that
// answer was wrong. If clocks are wrong all the time, it is a slot before the lease began.
func (x witness) wrongSince() (onset time.Duration, ok bool) {
	w := x.p.world
	if w.o.Faults.Drift > 0.001 || w.o.Faults.Apart > 0 {
		return max(0, x.Began-(x.End-x.Start)), true
	}
	if x.p.lied {
		return x.p.trusted, true
	}
	i := slices.IndexFunc(x.p.answers.had, func(a answer) bool { return !a.stamp.IsZero() })
	if i < 0 {
		return 0, false
	}
	first := x.p.answers.had[i]
	for _, s := range w.server.jumps {
		if first.left < s.from && s.from <= x.at {
			onset, ok = s.from, true
		}
	}
	for _, s := range x.p.host.stalls {
		// Also a freeze while that answer was on its way.
		if s.kind == Freeze && first.sent < s.to && s.from <= x.at {
			onset, ok = max(onset, s.from), true
		}
	}
	return onset, ok
}

// tookBack is when the store first took back the record of one of the two, or another record in
// the same place: then the other may have worked by the record that was there before. A store
// with a TTL takes records back all the time.
func (w *world) tookBack(two [2]witness) (onset time.Duration, ok bool) {
	if w.o.Faults.TTL > 0 {
		return 0, true
	}
	for _, x := range two {
		for _, u := range w.ledgers[x.WorkerType].undone {
			if g := x.record; g != nil && (u.record.Claim == g.claim || u.record.Seq == g.seq) && u.at <= two[0].at && (!ok || u.at < onset) {
				onset, ok = u.at, true
			}
		}
	}
	return onset, ok
}
