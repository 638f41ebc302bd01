package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// judge makes all checks of what the ledger said.
func (f facts) judge(t storeuri.Target) []store.Finding {
	slot := shortestSlot(f.ledgers)
	found := []store.Finding{
		judgeClock(f.samples, f.clockErr, slot), judgeNTP(), judgeTrips(f.trips, f.tripsErr, slot),
		judgeTypes(f.types, f.named, f.typesErr), judgeWorkers(f.workers, f.unlisted, f.ledgers, f.workersErr), judgeClocks(f.workers, f.workersErr), judgeHints(f.watchErr),
	}
	if err := f.unread(); err != nil {
		for _, check := range []string{checkLength, checkHead, checkOrders, checkUnreachable, checkSchedules} {
			found = append(found, unread(check, err))
		}
		return found
	}
	for _, c := range []finding{
		judgeLength(f.ledgers, f.at), judgeHead(f.ledgers, f.at, t), judgeOrders(f.ledgers, f.at, t), judgeUnreachable(f.ledgers),
		judgeSchedules(f.ledgers, f.workers, f.at),
	} {
		if f.left > 0 {
			c.Text += fmt.Sprintf("; %d further worker types were not looked at", f.left)
		}
		found = append(found, c)
	}
	return found
}

type finding = store.Finding

// unread is why the ledgers aren't known; nil if they are.
func (f facts) unread() error {
	if f.typesErr != nil {
		return f.typesErr
	}
	for _, l := range f.ledgers {
		if l.err != nil {
			return l.err
		}
	}
	if f.at.IsZero() {
		return f.clockErr
	}
	return nil
}

// reachable are the records with a key that workers follow.
func reachable(records []store.Record) []store.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r store.Record) bool { return r.Seq < 1 })
}

// shortestSlot is the shortest slot by the newest records of any type, or that of a worker without options.
func shortestSlot(all []ledger) time.Duration {
	shortest := time.Duration(0)
	for _, l := range all {
		for _, r := range reachable(l.records) {
			if d := r.SlotEnd.Sub(r.SlotStart); r.Defect == "" && r.Kind == store.KindGrant && d > 0 && (shortest == 0 || d < shortest) {
				shortest = d
			}
		}
	}
	if shortest == 0 {
		return defaultSlot
	}
	return shortest
}

// judgeTrips says how long a read takes, beside the time in which workers claim.
func judgeTrips(took []time.Duration, err error, slot time.Duration) store.Finding {
	if len(took) == 0 {
		return unread(checkRoundTrips, err)
	}
	median, longest := took[len(took)/2], took[len(took)-1]
	text := fmt.Sprintf("a read takes %v, at most %v of %d", brief(median), brief(longest), len(took))
	t, err := (workerlease.Options{WorkerType: "doctor", LeaseInterval: slot}).Timing()
	if err != nil {
		return ok(checkRoundTrips, "%s", text)
	}
	lead := t.LeadAfter(slot)
	step := t.Turns(lead, 0).Step
	text += fmt.Sprintf("; claims for slots of %v open %v before, and priorities claim %v apart", slot, brief(lead), brief(step))
	if t.Turns(lead, median).Step > step || 2*longest > lead {
		return warn(checkRoundTrips, "bring this machine nearer to the store, give the store more capacity, or use a longer lead (Options.Lead, --lead)",
			"%s: so slow that priorities claim later, and that a slot may be claimed too late", text)
	}
	return ok(checkRoundTrips, "%s", text)
}

// mostKept is how long a worker with default options keeps records like one beyond the newest 100: a retention, and as
// long again for a ledger in which nobody has won of late.
func mostKept(r store.Record) time.Duration {
	if r.Attempt > 0 {
		return 2 * workerlease.JobRetention(r.SlotEnd.Sub(r.SlotStart))
	}
	return 2 * workerlease.DefaultRetention
}

// judgeLength says how long the ledgers are, and whether anybody trims them. The newest 100 records stay whatever
// their age, and the worker that trims does so once in many slots.
func judgeLength(all []ledger, now time.Time) store.Finding {
	const slack = 500
	var long []string
	total := int64(0)
	longest := ledger{}
	for _, l := range all {
		total += l.count
		if l.count > longest.count {
			longest = l
		}
		since := l.oldest.FixedAt
		if l.count > newest+slack && !since.IsZero() && now.Sub(since) > mostKept(l.oldest) {
			long = append(long, fmt.Sprintf("%s has %d records, the oldest of %s", l.name, l.count, since.UTC().Format(time.DateOnly)))
		}
	}
	switch {
	case len(long) > 0:
		return warn(checkLength, "let a worker lead that may delete (trim-right): it trims. If Options.Retention, or --retention, is that long, all is well", "%s: nobody trims", some(long))
	case total == 0:
		return ok(checkLength, "no records yet")
	}
	return ok(checkLength, "%d records, %d of %s", total, longest.count, longest.name)
}

// judgeTypes looks at the names of the worker types.
func judgeTypes(types inspect.Types, named string, err error) store.Finding {
	if err != nil {
		return unread(checkWorkerTypes, err)
	}
	var alike []string
	for name, other := range inspect.Twins(types.Valid) {
		if name < other {
			alike = append(alike, name+" and "+other)
		}
	}
	slices.Sort(alike)
	switch {
	case len(alike) > 0:
		return warn(checkWorkerTypes, "let all workers use one of the names: workers of two types exclude nobody from each other", "%s differ in case only", some(alike))
	case len(types.Invalid) > 0:
		return warn(checkWorkerTypes, "find the program that wrote these records, and remove them: no worker reads them", "names that no worker type can have: %s", inspect.Types{Invalid: types.Invalid})
	case named != "" && !slices.Contains(types.Valid, named):
		return warn(checkWorkerTypes, "check the name, or start a worker", "there are no records of %s; the ledger has %s", named, orNone(types.String()))
	}
	return ok(checkWorkerTypes, "%s", orNone(types.String()))
}

func orNone(list string) string {
	if list == "" {
		return "no records yet"
	}
	return list
}

// judgeHead says whether workers can obey what is newest, and claim after it.
func judgeHead(all []ledger, now time.Time, t storeuri.Target) store.Finding {
	var blocked, poison, remedies, waits []string
	var ahead time.Time
	for _, l := range all {
		records := reachable(l.records)
		if len(records) == 0 {
			continue
		}
		head, known := history.FindHead(l.records, newest, now)
		entries := history.Read(l.records, now, nil)
		last := entries[len(entries)-1]
		override := advice.Command(t, fmt.Sprintf("leasectl override --worker-type %s --seq %d", l.name, head.Record.Seq))
		if known && head.Stuck {
			blocked = append(blocked, l.name+": nothing but records that can't be obeyed is left, and no worker supersedes them")
			remedies = append(remedies, override)
			continue
		}
		if !last.BlocksUntil.IsZero() {
			blocked = append(blocked, fmt.Sprintf("%s: record %d leaves nothing to claim until %s", l.name, last.BlockedBy, stamp(last.BlocksUntil)))
			remedies = append(remedies, override)
			continue
		}
		for _, e := range entries {
			if e.State == history.Poison && e.Record.Seq == records[0].Seq {
				poison = append(poison, fmt.Sprintf("%s: workers can't obey record %d: %s", l.name, e.Record.Seq, display.Clip(display.Line(e.Defect), 120)))
				if at := inspect.WrittenAhead(e.Record, now); !at.IsZero() {
					ahead = at
				}
				if head.Watched > 0 && e.Record.Seq == head.Record.Seq {
					waits = append(waits, fmt.Sprintf("workers supersede record %d of %s about %s after one of them has seen it; to end it now: %s",
						e.Record.Seq, l.name, display.Brief(head.Watched), override))
				}
				break
			}
		}
	}
	f := store.Finding{Check: checkHead, Level: store.LevelWarn, Text: some(append(blocked, poison...)), Remedy: some(slices.Concat(remedies, waits))}
	if len(blocked)+len(poison) == 0 {
		return ok(checkHead, "workers can obey the newest records, and claim after them")
	}
	if len(poison) > 0 {
		find := "find the program that wrote it"
		if !ahead.IsZero() {
			find = "it was written at " + stamp(ahead) + " by the store's clock, which was set back since, most likely: see the checks of clocks; if not, " + find
		}
		f.Remedy = strings.TrimPrefix(f.Remedy+"; "+find, "; ")
	}
	if len(blocked) > 0 {
		f.Level = store.LevelFail
	}
	return f
}

// judgeOrders names the orders of operators: a pause or a drain may be why nobody works.
func judgeOrders(all []ledger, now time.Time, t storeuri.Target) store.Finding {
	var keep, others, remedies, moves []string
	for _, l := range all {
		for _, o := range inspect.OrdersIn(l.records, now) {
			text := l.name + ": " + display.Clip(display.Line(o.String()), 160)
			resume := "leasectl resume --worker-type " + l.name
			switch role, _ := o.Move(); role {
			case store.MoveLeft:
				keep, moves = append(keep, text), append(moves, fmt.Sprintf("stop the workers of %s with this store: it was moved from here", l.name))
				continue
			case store.MoveArriving:
				keep, moves = append(keep, text), append(moves, fmt.Sprintf("repeat the leasectl copy that moves %s here: it ends the pause", l.name))
				continue
			case store.MoveLeaving:
				keep, moves = append(keep, text), append(moves, fmt.Sprintf("if no leasectl copy of %s runs any more, repeat it, or give it up: %s", l.name, advice.Command(t, resume)))
				continue
			}
			switch o.Kind {
			case store.OrderPause:
			case store.OrderDrain:
				host, able := display.Word(o.Target)
				if resume += " --kind drain"; able {
					resume += " --host " + host
				}
			case store.OrderPrefer, store.OrderRelease:
				fallthrough
			default:
				others = append(others, text)
				continue
			}
			keep, remedies = append(keep, text), append(remedies, advice.Command(t, resume))
		}
	}
	switch {
	case len(keep) > 0:
		if len(remedies) > 0 {
			moves = append(moves, "if that is over, "+some(remedies))
		}
		return warn(checkOrders, strings.Join(moves, "; "), "%s", some(append(keep, others...)))
	case len(others) > 0:
		return ok(checkOrders, "%s", some(others))
	}
	return ok(checkOrders, "none is in force")
}

// stamp is a time of a record, which may be any.
func stamp(t time.Time) string {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return "for ever"
	}
	return store.Format(t)
}

// judgeUnreachable looks for records that workers pass over.
func judgeUnreachable(all []ledger) store.Finding {
	var which []string
	for _, l := range all {
		for _, r := range l.records {
			if r.Seq < 1 && r.Defect != "" {
				which = append(which, fmt.Sprintf("%s (%s)", l.name, display.Clip(display.Line(r.Defect), 80)))
				break
			}
		}
	}
	if len(which) > 0 {
		return warn(checkUnreachable, "remove them by hand, with the store's own tools: workers pass them over", "there are records that nobody can reach: %s", some(which))
	}
	return ok(checkUnreachable, "none")
}

// judgeSchedules looks for worker types with two schedules at a time: by the workers that are there, or by records
// that go back and forth. One that just changed is no fault, nor are two texts for the same slots. And it looks for
// slots that their schedule doesn't have here: by another release of the tz database.
func judgeSchedules(all []ledger, workers []workerlease.Candidate, now time.Time) store.Finding {
	var several, odd, apart []string
	for _, w := range workers { // A worker type may have no records yet.
		if !slices.ContainsFunc(all, func(l ledger) bool { return l.name == w.WorkerType }) {
			all = append(slices.Clip(all), ledger{name: w.WorkerType})
		}
	}
	for _, l := range all {
		schedules := backAndForth(l.records)
		for _, w := range workers {
			same := func(text string) bool { return sameSlots(text, w.Schedule, now) }
			if w.WorkerType == l.name && w.Present && w.Schedule != "" && !slices.ContainsFunc(schedules, same) {
				schedules = append(schedules, w.Schedule)
			}
		}
		for _, r := range reachable(l.records) {
			if ours, differs := history.OtherSlot(r); differs {
				odd = append(odd, fmt.Sprintf("record %d of %s is for the slot of %s by %q, which is that of %s here", r.Seq, l.name, store.Format(r.SlotStart), display.Clip(display.Line(r.Schedule), 40), store.Format(ours.Start)))
				break
			}
		}
		if len(schedules) > 1 {
			apart = append(apart, advice.OneSchedule(schedules))
			for i, s := range schedules {
				schedules[i] = fmt.Sprintf("%q", display.Clip(display.Line(s), 40))
			}
			several = append(several, fmt.Sprintf("%s has %s", l.name, strings.Join(schedules, " and ")))
		}
	}
	if len(odd) > 0 {
		return warn(checkSchedules, "give all machines, and this one, the same release of the tz database, or use a schedule in UTC", "%s", some(append(odd, several...)))
	}
	if len(several) > 0 {
		slices.Sort(apart)
		return warn(checkSchedules, strings.Join(slices.Compact(apart), "; ")+": they exclude each other, but none gets all it wants", "%s", some(several))
	}
	return ok(checkSchedules, "one for each worker type")
}

// sameSlots reports that two schedules have the same slots, or one text.
func sameSlots(a, b string, now time.Time) bool {
	of, err := slots.Parse(a)
	other, otherErr := slots.Parse(b)
	return a == b || err == nil && otherErr == nil && slots.Same(of, other, now)
}

// backAndForth are the schedules of grants, newest first, if one of them came back after another; else there is
// none.
func backAndForth(records []store.Record) (found []string) {
	var runs []string
	for _, r := range reachable(records) {
		if r.Defect != "" || r.Kind != store.KindGrant || r.Schedule == "" || r.Triggered() || len(runs) > 0 && sameSlots(runs[len(runs)-1], r.Schedule, r.SlotStart) {
			continue
		}
		back := slices.Contains(runs, r.Schedule)
		runs = append(runs, r.Schedule)
		if back {
			slices.Sort(runs)
			return slices.Compact(runs)
		}
	}
	return nil
}

// some are texts in a line, at most three of them.
func some(texts []string) string {
	const most = 3
	text := strings.Join(texts[:min(len(texts), most)], "; ")
	if len(texts) > most {
		text += fmt.Sprintf("; and %d more", len(texts)-most)
	}
	return text
}
