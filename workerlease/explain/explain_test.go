package explain_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/explain"
)

var minutes = recordtest.Minutes

// worker is the presence of a worker that was there all the time, and was seen 1 min after Noon + 10 min.
func worker(name string, change ...func(p *store.Presence)) store.Presence {
	p := store.Presence{
		WorkerType: "export", ID: name, InstanceID: name, Host: "vm-" + name, PID: 1, Schedule: "every 5m", Priority: 1, Effective: 1,
		Phase: store.PhaseCandidate, Since: minutes(-60), Seen: minutes(11), Next: minutes(16),
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

// grant is that of a slot to a worker, as the worker's own process wrote it.
func grant(seq int64, n int, name string) store.Record {
	r := recordtest.Grant(seq, n, name)
	r.Worker.Host = "vm-" + name
	return r
}

// missed lets a worker say why it did not get a slot.
func missed(why string, from, to float64) func(p *store.Presence) {
	return func(p *store.Presence) { p.Missed, p.MissedFrom, p.MissedUntil = why, minutes(from), minutes(to) }
}

// with adds orders in force to a record.
func with(r store.Record, orders ...store.Order) store.Record {
	r.Orders, _ = store.FormatOrders(orders)
	return r
}

func order(kind store.OrderKind, target string, from, to float64) store.Order {
	return store.Order{Kind: kind, Target: target, At: minutes(from), Until: minutes(to), By: "ann", Why: "upgrade"}
}

// orderRecord is the record by which an order begins or ends.
func orderRecord(head store.Record, seq int64, o store.Order) store.Record {
	head.Seq, head.Kind, head.WindowStart = seq, store.KindOrder, head.WindowEnd
	text, _ := o.MarshalJSON()
	head.Metadata = string(text)
	return head
}

// answer is an explanation in short.
func answer(e explain.Explanation) (lines []string) {
	head := fmt.Sprintf("%s %s", e.Slot.Start.Format("15:04"), e.When)
	if e.Holder != nil {
		head += " " + e.Holder.Record.InstanceID
	}
	for _, c := range e.Nobody {
		head += " nobody: " + string(c.Reason)
		if len(c.Workers) > 0 {
			head += " " + strings.Join(c.Workers, ",")
		}
	}
	if e.GapSlots > 0 {
		head += fmt.Sprintf(" %d from %s to %s", e.GapSlots, e.Gap.Start.Format("15:04"), e.Gap.End.Format("15:04"))
	}
	if e.Unread {
		head += " unread"
	}
	lines = append(lines, head)
	for _, v := range e.Workers {
		line := v.InstanceID + " " + string(v.Reason)
		if !v.Certain && v.Reason != explain.Unknown {
			line += "?"
		}
		if v.Before {
			line += " before"
		}
		if v.OwnBefore {
			line += " although it had the one before"
		}
		if v.Detail != "" {
			line += ": " + v.Detail
		}
		if v.Order != nil {
			line += " by " + v.Order.By
		}
		lines = append(lines, line)
	}
	return lines
}

func TestExplain(t *testing.T) {
	a, b := grant(1, 1, "a"), grant(2, 2, "a") // 12:05 and 12:10
	cut := change(a, func(r *store.Record) { r.WindowEnd = minutes(7) })
	long := change(grant(1, 0, "a"), func(r *store.Record) { r.Attempt, r.WindowEnd = 1, minutes(8) })
	shared := func(first, second, next string) []store.Record { // a slot of two, and the next one, the newest first
		r := []store.Record{grant(4, 2, next), change(recordtest.Part(3, grant(3, 1, second), 7, 10), func(r *store.Record) { r.Token = minutes(7).UnixMilli() })}
		return append(r, recordtest.Release(grant(1, 1, first), 2, minutes(7)), grant(1, 1, first))
	}
	equal := func(p *store.Presence) { p.Effective, p.Seen = 0, minutes(9.9) }
	silent := change(grant(1, 1, "b"), func(r *store.Record) { r.Attempt, r.WindowEnd = 1, minutes(6) })
	goesOn := change(recordtest.Part(2, grant(2, 1, "a"), 6.5, 13), func(r *store.Record) { r.Attempt, r.Token = 2, minutes(6.5).UnixMilli() })
	failed := recordtest.Release(long, 2, minutes(6))
	failed.Metadata = recordtest.Outcome(long, minutes(6), store.Failed).Metadata()
	begins := func(within float64) func(p *store.Presence) {
		return func(p *store.Presence) {
			p.Job, p.Seen = &store.JobTimes{StartWithin: minutes(within).Sub(minutes(0)), Overrun: "finish"}, minutes(7)
		}
	}
	pause, drain := order(store.OrderPause, "", 4, 30), order(store.OrderDrain, "vm-b", 4, 30)
	for name, test := range map[string]struct {
		at, now float64
		records []store.Record
		roster  []store.Presence
		want    []string
	}{
		"within one priority":                   {11, 11, []store.Record{b, a}, []store.Presence{worker("b", func(p *store.Presence) { p.Effective = 0 })}, []string{"12:10 now a", "a had", "b samePriority before"}},
		"a run that went on into it has failed": {7, 7, []store.Record{failed, long}, []store.Presence{worker("b", begins(1))}, []string{"12:05 now nobody: stillRunning", "b stillRunning"}},
		"and it may yet begin":                  {7, 7, []store.Record{failed, long}, []store.Presence{worker("b", begins(4))}, []string{"12:05 now", "b contends"}},
		"the first slot is claimed":             {4.9, 4.9, []store.Record{a}, []store.Presence{worker("a", func(p *store.Presence) { p.Since, p.Seen = minutes(4), minutes(4.9) })}, []string{"12:00 now nobody: nobodyThere", "a notStarted"}},
		"it had the one before":                 {11, 11, []store.Record{b, grant(1, 1, "b")}, []store.Presence{worker("b", func(p *store.Presence) { p.Effective, p.Seen = 0, minutes(9.9) })}, []string{"12:10 now a", "a had", "b samePriority although it had the one before"}},
		"both had the one before":               {11, 11, shared("a", "b", "a"), []store.Presence{worker("b", equal)}, []string{"12:10 now a", "a had", "b samePriority"}},
		"so that it goes before a third":        {11, 11, shared("a", "b", "a"), []store.Presence{worker("c", equal)}, []string{"12:10 now a", "a had", "c samePriority before"}},
		"it had the one before, with a third":   {11, 11, shared("b", "d", "c"), []store.Presence{worker("b", equal)}, []string{"12:10 now c", "b samePriority although it had the one before", "c had"}},
		"it was silent before a run went on":    {11, 11, []store.Record{goesOn, silent}, []store.Presence{worker("b", func(p *store.Presence) { p.Seen = minutes(4.5) })}, []string{"12:10 now a nobody: stillRunning", "b absent"}},
		"its own run went on, and it died":      {11, 17, []store.Record{change(goesOn, func(r *store.Record) { r.Seq, r.InstanceID, r.Worker.Host = 1, "b", "vm-b" })}, []store.Presence{worker("b", func(p *store.Presence) { p.Seen = minutes(11) })}, []string{"12:10 past b nobody: stillRunning 2 from 12:10 to 12:20", "b stillRunning"}},
		"by priority":                           {11, 11, []store.Record{b, a}, []store.Presence{worker("a"), worker("b")}, []string{"12:10 now a", "a had", "b higherPriority"}},
		"by an older word":                      {6, 11, []store.Record{b, a}, []store.Presence{worker("b")}, []string{"12:05 past a", "a had", "b higherPriority?"}},
		"unknown of an older slot": {
			6, 11,
			[]store.Record{b, a},
			[]store.Presence{worker("b", func(p *store.Presence) { p.Effective = 0 })},
			[]string{"12:05 past a", "a had", "b unknown"},
		},
		"its turn was before": {11, 11, []store.Record{change(b, func(r *store.Record) { r.Priority = 3 }), a}, []store.Presence{worker("b")}, []string{"12:10 now a", "a had", "b lateInTurn"}},
		"in its own words": {
			6, 17,
			[]store.Record{b, a},
			[]store.Presence{worker("b", func(p *store.Presence) { p.Effective = 0 }, missed("a has it, with priority 0", 5, 10))},
			[]string{"12:05 past a", "a had", "b samePriority"},
		},
		"words about another slot": {
			6, 17,
			[]store.Record{b, a},
			[]store.Presence{worker("b", func(p *store.Presence) { p.Effective = 0 }, missed("nobody had it: overrun", 0, 5))},
			[]string{"12:05 past a", "a had", "b unknown"},
		},
		"overran": {6, 17, []store.Record{b, a}, []store.Presence{worker("b", missed("nobody had it: overrun", 5, 10))}, []string{"12:05 past a", "a had", "b overran: overrun"}},
		"not eligible": {
			11, 11,
			[]store.Record{b, a},
			[]store.Presence{worker("b", func(p *store.Presence) { p.Ineligible = "disk full" })},
			[]string{"12:10 now a", "a had", "b notEligible: disk full"},
		},
		"not eligible, as it said later":         {6, 17, []store.Record{b, a}, []store.Presence{worker("b", func(p *store.Presence) { p.Ineligible = "disk full" })}, []string{"12:05 past a", "a had", "b higherPriority?"}},
		"its clock":                              {11, 11, []store.Record{b, a}, []store.Presence{worker("b", func(p *store.Presence) { p.Uncertainty = 3 * time.Minute })}, []string{"12:10 now a", "a had", "b clockUnfit"}},
		"absent":                                 {11, 11, []store.Record{b, a}, []store.Presence{worker("b", func(p *store.Presence) { p.Seen, p.Next = minutes(2), minutes(7) })}, []string{"12:10 now a", "a had", "b absent"}},
		"its presence is old, and it isn't gone": {11, 11, []store.Record{change(b, func(r *store.Record) { r.Seq = 3 }), recordtest.Release(change(grant(1, 1, "b"), func(r *store.Record) { r.ReadAt = minutes(9.5) }), 2, minutes(9.5)), grant(1, 1, "b")}, []store.Presence{worker("b", func(p *store.Presence) { p.Seen, p.Next = minutes(2), minutes(4) })}, []string{"12:10 now a", "a had", "b higherPriority"}},
		"died, perhaps before":                   {11, 14, []store.Record{b, a}, []store.Presence{worker("b", func(p *store.Presence) { p.Seen, p.Next = minutes(9), minutes(13) })}, []string{"12:10 now a", "a had", "b absent?"}},
		"died in its lease before": {
			11, 11,
			[]store.Record{grant(2, 2, "b"), cut},
			[]store.Presence{worker("a", func(p *store.Presence) { p.Effective, p.Seen = 0, minutes(6) })},
			[]string{"12:10 now b", "a absent", "b had"},
		},
		"died in its lease, and came again": {
			11, 11,
			[]store.Record{grant(2, 2, "b"), cut},
			[]store.Presence{worker("a", func(p *store.Presence) { p.Effective, p.Seen = 0, minutes(9) })},
			[]string{"12:10 now b", "a samePriority", "b had"},
		},
		"began later": {11, 11, []store.Record{b, a}, []store.Presence{worker("b", func(p *store.Presence) { p.Since = minutes(10.5) })}, []string{"12:10 now a", "a had", "b notStarted"}},
		"joined in mid-slot": {
			11, 11,
			[]store.Record{b, a},
			[]store.Presence{worker("b", func(p *store.Presence) { p.Since = minutes(10.5) }, missed("a has it, with priority 0", 10, 15))},
			[]string{"12:10 now a", "a had", "b notStarted: a has it, with priority 0"},
		},
		"stopped": {
			11, 11,
			[]store.Record{b, a},
			[]store.Presence{worker("b", func(p *store.Presence) { p.Phase, p.Seen = store.PhaseStopped, minutes(3) })},
			[]string{"12:10 now a", "a had", "b stopped"},
		},
		"steps back": {
			6, 17,
			[]store.Record{b, a},
			[]store.Presence{worker("b", func(p *store.Presence) { p.Failures, p.FailedIn, p.StepsBackUntil = 3, minutes(0), minutes(20) })},
			[]string{"12:05 past a", "a had", "b steppedBack"},
		},
		"another schedule":            {6, 17, []store.Record{b, a}, []store.Presence{worker("b", func(p *store.Presence) { p.Schedule = "every 7m" })}, []string{"12:05 past a", "a had", "b otherSchedule: every 7m"}},
		"another process of its name": {11, 11, []store.Record{b, a}, []store.Presence{worker("a", func(p *store.Presence) { p.PID = 2 })}, []string{"12:10 now a", "a had", "a higherPriority"}},
		"its group": {
			11, 11,
			[]store.Record{change(b, func(r *store.Record) { r.Group = "north" })},
			[]store.Presence{worker("a", inGroup), worker("b", inGroup)},
			[]string{"12:10 now a", "a had", "b had"},
		},
		"a lease that goes on": {11, 11, []store.Record{recordtest.NextSlot(2, a, 2, 10, 15), a}, []store.Presence{worker("b", func(p *store.Presence) { p.Effective = 0 })}, []string{"12:10 now a", "a had", "b continued"}},
		"a drained host":       {11, 11, []store.Record{with(b, order(store.OrderDrain, "vm-b", 1, 30)), a}, []store.Presence{worker("b")}, []string{"12:10 now a", "a had", "b drained by ann"}},
		"a preference":         {11, 11, []store.Record{with(b, order(store.OrderPrefer, "a", 1, 30)), a}, []store.Presence{worker("b", func(p *store.Presence) { p.Effective = 0 })}, []string{"12:10 now a", "a had", "b preferred by ann"}},
		"a preference that came later": {
			11, 14,
			[]store.Record{orderRecord(with(b, order(store.OrderPrefer, "a", 12, 30)), 3, order(store.OrderPrefer, "a", 12, 30)), b, a},
			[]store.Presence{worker("b")},
			[]string{"12:10 now a", "a had", "b higherPriority"},
		},
		"a pause": {11, 12, []store.Record{orderRecord(with(a, pause), 2, pause), a}, []store.Presence{worker("b")}, []string{"12:10 now nobody: paused 1 from 12:10 to 12:15", "b paused by ann"}},
		"a pause that was ended": {
			11, 12,
			[]store.Record{orderRecord(a, 3, order(store.OrderPause, "", 8, 8)), orderRecord(with(a, pause), 2, pause), a},
			[]store.Presence{worker("b")},
			[]string{"12:10 now 1 from 12:10 to 12:15", "b contends"},
		},
		"a drained host and no other": {
			11, 12,
			[]store.Record{orderRecord(with(a, drain), 2, drain), a},
			[]store.Presence{worker("b"), worker("c", func(p *store.Presence) { p.Seen, p.Next = minutes(2), minutes(7) })},
			[]string{"12:10 now nobody: drained b 1 from 12:10 to 12:15", "b drained by ann", "c absent"},
		},
		"drained, in its own words": {
			11, 12,
			[]store.Record{orderRecord(with(a, drain), 2, drain), a},
			[]store.Presence{worker("b", missed("nobody had it: drained", 10, 15))},
			[]string{"12:10 now nobody: drained b 1 from 12:10 to 12:15", "b drained: drained by ann"},
		},
		"drained by nobody who is known": {
			11, 12,
			[]store.Record{a},
			[]store.Presence{worker("b", missed("nobody had it: drained", 10, 15))},
			[]string{"12:10 now nobody: drained b 1 from 12:10 to 12:15", "b drained: drained"},
		},
		"paused, in its own words": {
			11, 12,
			[]store.Record{orderRecord(with(a, pause), 2, pause), a},
			[]store.Presence{worker("b", missed("nobody had it: paused", 10, 15))},
			[]string{"12:10 now nobody: paused 1 from 12:10 to 12:15", "b paused: paused by ann"},
		},
		"nobody, as they say": {
			11, 17,
			[]store.Record{a},
			[]store.Presence{worker("b", missed("nobody had it: store unreachable", 10, 15)), worker("c", missed("nobody had it: overrun", 10, 15))},
			[]string{"12:10 past nobody: unreachable b nobody: overran c 2 from 12:10 to 12:20", "b unreachable: store unreachable", "c overran: overrun"},
		},
		"nobody was there": {31, 42, []store.Record{a}, []store.Presence{worker("b")}, []string{"12:30 past nobody: nobodyThere 7 from 12:10 to 12:45", "b absent"}},
		"nobody knows":     {16, 42, []store.Record{a}, nil, []string{"12:15 past nobody: unknown 7 from 12:10 to 12:45"}},
		"poison": {
			11, 17,
			[]store.Record{grant(3, 3, "a"), {WorkerType: "export", Seq: 2, Defect: "no token"}, a},
			nil,
			[]string{"12:10 past nobody: poisoned 1 from 12:10 to 12:15"},
		},
		"released before":    {8, 8, []store.Record{recordtest.Release(a, 2, minutes(6)), a}, []store.Presence{worker("b")}, []string{"12:05 now", "a had", "b higherPriority"}},
		"claimed already":    {16, 14, []store.Record{grant(3, 3, "b"), b, a}, []store.Presence{worker("a"), worker("b")}, []string{"12:15 future b", "a higherPriority", "b had"}},
		"open yet":           {16, 14, []store.Record{b, a}, []store.Presence{worker("a"), worker("b", func(p *store.Presence) { p.Ineligible = "ill" }), worker("c", func(p *store.Presence) { p.Seen, p.Next = minutes(1), minutes(6) })}, []string{"12:15 future", "a contends", "b notEligible?: ill", "c absent"}},
		"before the records": {-20, 11, []store.Record{b, a}, []store.Presence{worker("b")}, []string{"11:40 past unread", "b unknown"}},
		"no records":         {1, 1, nil, nil, []string{"00:00 past"}},
		"a schedule that can't be read": {
			31, 31,
			[]store.Record{change(a, func(r *store.Record) { r.Schedule = "now and then" })},
			[]store.Presence{worker("b")},
			[]string{"00:00 past", "b unknown"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := explain.Question{At: minutes(test.at), Now: minutes(test.now), Records: test.records, Presences: test.roster}
			got := explain.Explain(q)
			if diff := cmp.Diff(test.want, answer(got)); diff != "" {
				t.Errorf("Explain() (-want +got):\n%s", diff)
			}
			if again := explain.Explain(q); !reflect.DeepEqual(got, again) {
				t.Errorf("Explain() = %+v, and then %+v", got, again)
			}
		})
	}
}

// An order that comes after a slot was decided may be why nobody has the rest of it.
func TestOrdersThatCameWithinTheSlotAreKnown(t *testing.T) {
	a := grant(1, 1, "a")
	drain := order(store.OrderDrain, "vm-a", 6, 30)
	records := []store.Record{recordtest.Release(with(a, drain), 3, minutes(7)), orderRecord(with(a, drain), 2, drain), a}
	for at, want := range map[float64]int{5.5: 0, 6.5: 1, 8: 1} {
		got := explain.Explain(explain.Question{At: minutes(at), Now: minutes(8), Records: records, Presences: []store.Presence{worker("b")}})
		if len(got.InForce) != want || len(got.Orders) != 0 || len(got.Terms) != 1 {
			t.Errorf("at %v: Explain() = %+v, want %d orders in force", at, got, want)
		}
	}
	before := order(store.OrderPause, "", 1, 30)
	ended := orderRecord(a, 2, order(store.OrderPause, "", 6, 6))
	got := explain.Explain(explain.Question{At: minutes(8), Now: minutes(8), Records: []store.Record{ended, with(a, before)}})
	if len(got.Orders) != 1 || len(got.InForce) != 0 {
		t.Errorf("Explain() = %+v, want no order that was ended before", got)
	}
}

// A move between stores replaces its pause by another one, and only that says what to do from then on.
func TestAnOrderEndsWhenAnotherTakesItsPlace(t *testing.T) {
	a := grant(1, 1, "a")
	first, second := order(store.OrderPause, "leaving 1", 6, 300), order(store.OrderPause, "left 1", 11, 300)
	records := []store.Record{orderRecord(with(a, second), 3, second), orderRecord(with(a, first), 2, first), a}
	for at, want := range map[float64]string{8: "leaving 1", 12: "left 1", 18: "left 1"} {
		got := explain.Explain(explain.Question{At: minutes(at), Now: minutes(18), Records: records})
		if len(got.InForce) != 1 || got.InForce[0].Target != want {
			t.Errorf("at %v: Explain() has the orders %+v in force, want %q", at, got.InForce, want)
		}
	}
}

// A worker that joined in mid-slot, and whose lease the store then lost, waits because of that: it isn't new.
func TestAWorkerWhoseStoreWentBackSaysSoAlsoInItsFirstSlot(t *testing.T) {
	for why, want := range map[string]explain.Reason{"nobody had it: store went back": explain.WentBack, "nobody had it: too late": explain.NotStarted} {
		b := worker("b", missed(why, 10, 15), func(p *store.Presence) { p.Since = minutes(11) })
		got := explain.Explain(explain.Question{At: minutes(12), Now: minutes(12), Presences: []store.Presence{b}})
		if len(got.Workers) != 1 || got.Workers[0].Reason != want {
			t.Errorf("Explain() of a worker that says %q = %+v, want %v", why, got.Workers, want)
		}
	}
}

func change(r store.Record, f func(*store.Record)) store.Record { f(&r); return r }

func inGroup(p *store.Presence) { p.Group = "north" }
