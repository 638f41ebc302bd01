package machine_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// waiting is a worker that takes over the rests of slots of an hour, and waits for the end of the
// 20 min that another worker was granted at 00:02.
func waiting(t testing.TB, change func(*world)) *world {
	t.Helper()
	c := plain()
	c.Schedule, c.Failover, c.Joins = slots.Must(slots.Every(time.Hour)), 30*time.Minute, true
	w := newWorld(c)
	w.local = 24*time.Hour + 2*time.Minute
	w.ledger[1] = rivals(w, 1, 20*time.Minute)
	if change != nil {
		change(w)
	}
	must(t, w.event(machine.Wake{}))
	settle(t, w)
	pass(t, w, 300*time.Millisecond, nil) // up to its turn
	return w
}

// rivals is a grant to another worker, from now on.
func rivals(w *world, seq int64, length time.Duration) store.Record {
	slot, now := w.m.Schedule.At(w.time()), w.time().Truncate(time.Millisecond)
	return store.Record{
		WorkerType: "mail", Seq: seq, Kind: store.KindGrant, InstanceID: "w2", Claim: "theirs", Token: now.UnixMilli(),
		SlotStart: slot.Start, SlotEnd: slot.End, WindowStart: now, WindowEnd: now.Add(length),
		ReadAt: now, Schedule: w.m.Schedule.String(),
	}
}

// release appends the release of the newest record.
func release(w *world) {
	r := w.ledger[w.top()]
	r.Seq++
	r.Kind, r.WindowStart = store.KindRelease, machine.ReadAt(w.now(0))
	r.WindowEnd = r.WindowStart
	w.ledger[r.Seq] = r
}

// settle lets the store answer as long as anything is asked of it, and returns what was.
func settle(t testing.TB, w *world) (asked []machine.Action) {
	t.Helper()
	for w.op != nil {
		asked = append(asked, w.op)
		must(t, w.event(w.reply(nil, false, 0)))
	}
	return asked
}

// asking is what a worker asks of the store, with the local reading then.
type asking struct {
	at time.Duration
	of machine.Action
}

// pass lets time pass. If something happens, it does so every 7 ms.
func pass(t testing.TB, w *world, d time.Duration, happens func()) (all []asking) {
	t.Helper()
	for end := w.local + d; w.local < end; {
		if happens != nil {
			happens()
		}
		if w.idle(w.moment()) != nil {
			must(t, w.event(machine.Wake{}))
		}
		at := w.local
		for _, a := range settle(t, w) {
			all = append(all, asking{at, a})
		}
		wait := max(w.least(), time.Millisecond)
		if happens != nil {
			wait = 7 * time.Millisecond
		}
		w.local = min(w.local+wait, end)
	}
	return all
}

// hint is what happens when a hint comes.
func hint(t testing.TB, w *world) func() {
	return func() { must(t, w.event(machine.Hinted{})) }
}

// looks are the times at which the head was read.
func looks(all []asking) (at []time.Duration) {
	for _, a := range all {
		if _, ok := a.of.(machine.ReadHead); ok {
			at = append(at, a.at)
		}
	}
	return at
}

// grants are the grants that were appended.
func grants(all []asking) (grants []store.Record) {
	for _, a := range all {
		if a, ok := a.of.(machine.Append); ok && a.Record.Kind == store.KindGrant {
			grants = append(grants, a.Record)
		}
	}
	return grants
}

func TestAReleaseIsTakenWhenAHintComesAndWithoutOneWhenItIsTime(t *testing.T) {
	for _, hinted := range []bool{false, true} {
		w := waiting(t, nil)
		pass(t, w, time.Minute, nil)
		release(w)
		if hinted {
			hint(t, w)()
		}
		soon := grants(pass(t, w, 100*time.Millisecond, nil))
		later := grants(pass(t, w, 20*time.Minute, nil))
		if hinted != (len(soon) == 1) || len(later) == 0 || hinted && later[0].Claim != soon[0].Claim {
			t.Errorf("hint: %v: grants within 100 ms: %v, and then: %v", hinted, soon, later)
		}
	}
}

// Where the time is uncertain, what was released ends a moment later, and the turns are wider.
func TestTheTurnsAfterAHintAllowForWhatIsUncertain(t *testing.T) {
	for _, c := range []struct {
		spread, least, most time.Duration
		priority            int
	}{
		{time.Millisecond, 0, 10 * time.Millisecond, 0},
		{50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 0},
		{50 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond, 2},
	} {
		w := waiting(t, func(w *world) { w.spread, w.m.Priority = c.spread, c.priority })
		pass(t, w, time.Minute, nil)
		began := w.local
		release(w)
		hint(t, w)()
		for _, a := range pass(t, w, 10*time.Second, nil) {
			if took := a.at - began; len(grants([]asking{a})) > 0 && (took < c.least || took > c.most) {
				t.Errorf("±%v, priority %d: claims %v later, want %v … %v", c.spread, c.priority, took, c.least, c.most)
			}
		}
		if w.top() < 3 {
			t.Errorf("±%v, priority %d: no claim", c.spread, c.priority)
		}
	}
}

// A look that is due anyway when a hint comes keeps the order of the turns, so that a lower priority
// doesn't claim first. However many hints come, it waits once, and at most hintGap.
func TestALookThatIsDueKeepsTheOrderOfTurnsAfterAHint(t *testing.T) {
	for _, c := range []struct {
		spread      time.Duration
		priority    int
		least, most time.Duration // later than it was due
	}{
		{10 * time.Microsecond, 0, 0, 7 * time.Millisecond},
		{10 * time.Microsecond, 2, 2 * time.Millisecond, 14 * time.Millisecond},
		{time.Second, 2, 0, 100 * time.Millisecond},
	} {
		begin := func() (*world, time.Duration) {
			w := waiting(t, func(w *world) { w.spread, w.m.Priority = c.spread, c.priority })
			began := w.local
			pass(t, w, 15*time.Minute, nil)
			w.ledger[2] = rivals(w, 2, 20*time.Minute) // longer than the worker knows
			return w, began
		}
		w, began := begin()
		due := looks(pass(t, w, 10*time.Minute, nil))[0] - began
		for _, happens := range []func(*world) func(){
			func(w *world) func() { hint(t, w)(); return nil },
			func(w *world) func() { return hint(t, w) },
		} {
			w, began := begin()
			pass(t, w, began+due-time.Millisecond-w.local, nil)
			at := looks(pass(t, w, time.Second, happens(w)))
			if late := at[0] - began - due; late < c.least || late > c.most {
				t.Errorf("±%v, priority %d: looks %v after it was due, want %v … %v", c.spread, c.priority, late, c.least, c.most)
			}
		}
	}
}

// Whatever the store says, and however often.
func TestHintsCostFiveLooksAtOnceAndThenOneInThreeSeconds(t *testing.T) {
	w := waiting(t, nil)
	for _, quiet := range []time.Duration{0, time.Second, 20 * time.Second, 2 * time.Minute} {
		if all := looks(pass(t, w, quiet, nil)); len(all) > 1 { // The last hint may have had to wait for its look.
			t.Errorf("%d looks with no hint", len(all))
		}
		all := pass(t, w, 30*time.Second, hint(t, w))
		at := looks(all)
		if samples := len(all) - len(at); samples > len(at) || len(grants(all)) > 0 {
			t.Errorf("%v", all)
		}
		first := 5
		if quiet > 0 && quiet < 15*time.Second {
			first = 1
		}
		if least, most := first+8, first+10; len(at) < least || len(at) > most {
			t.Errorf("%d looks in 30 s after %v without any, want %d to %d", len(at), quiet, least, most)
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i] - at[i-1]; gap < 100*time.Millisecond || i > first && gap < 3*time.Second-200*time.Millisecond {
				t.Errorf("look %d comes %v after the one before", i+1, gap)
			}
		}
	}
}

func TestWhoTakesNoRestsDoesNotHeedHints(t *testing.T) {
	for name, change := range map[string]func(*world){
		"plain":                func(w *world) { w.m.Failover = 0 },
		"continuous":           func(w *world) { w.m.Failover, w.m.Continuous = 0, true },
		"continuous, stays":    func(w *world) { w.m.Failover, w.m.Continuous, w.m.NoFailback = 0, true, true },
		"job that needn't run": func(w *world) { w.m.Failover, w.m.Once = 0, true },
		"a single claim":       func(w *world) { w.m.Single = true },
	} {
		w := waiting(t, change)
		release(w)
		heeds := false
		all := pass(t, w, 30*time.Second, func() {
			heeds = heeds || w.m.MayHeed(&w.s)
			hint(t, w)()
		})
		if w.m.TakesRests() || heeds || len(all) > 0 {
			t.Errorf("%s: takes rests: %v, heeds hints: %v, asks: %v", name, w.m.TakesRests(), heeds, all)
		}
	}
}

// A hint that comes while the head is read may be of what that read doesn't show.
func TestAHintAmidALookLeadsToOneMore(t *testing.T) {
	w := waiting(t, nil)
	hint(t, w)()
	for w.op == nil {
		must(t, w.goOn())
	}
	for {
		if _, ok := w.op.(machine.ReadHead); ok {
			break
		}
		must(t, w.goOn())
	}
	stale := w.reply(nil, false, 0)
	release(w)
	for range 3 {
		if i := w.m.MayHeed(&w.s); i != (w.s.Hint == machine.Hint{Looking: true, Looked: w.s.Hint.Looked, Spent: w.s.Hint.Spent}) {
			t.Errorf("heeds hints: %v, after %+v", i, w.s.Hint)
		}
		hint(t, w)()
	}
	must(t, w.event(stale))
	all := pass(t, w, time.Second, nil)
	if len(looks(all)) != 1 || len(grants(all)) != 1 {
		t.Errorf("%v, want one look and a grant", all)
	}
}

// To a worker that doesn't wait for another one's window to end, whatever it is about, a hint is no
// more than waking up.
func TestAHintInEveryState(t *testing.T) {
	hinted, woken := situations(t), situations(t)
	for i, s := range hinted {
		t.Run(s.name, func(t *testing.T) {
			a, b := s.w, woken[i].w
			a.log, b.log = nil, nil
			for range 12 {
				if machine.Heeds(&a.m, &a.s) {
					return
				}
				must(t, a.event(machine.Hinted{}))
				must(t, b.event(machine.Wake{}))
				if !a.halted {
					must(t, a.goOn())
					must(t, b.goOn())
				}
				if !reflect.DeepEqual(a.log, b.log) && !machine.Heeds(&a.m, &a.s) {
					t.Fatalf("with hints: %v\nwithout: %v", a.log, b.log)
				}
			}
		})
	}
}

// The holder releases its lease at any time in the last parts of the slot, and a hint says so. A worker
// takes what is left only if that is over before claims for the next slot are due, and has the next
// slot in its turn.
func TestAHintNearTheNextSlotCostsNothingOfThat(t *testing.T) {
	next, opens := eve.Add(24*time.Hour+5*time.Minute), 50*time.Second
	for _, window := range []time.Duration{opens, time.Minute} {
		// run is when the worker claims the next slot, and what it claims of this one.
		run := func(after time.Duration, happens func(*world)) (at time.Duration, rest []store.Record) {
			w := waiting(t, func(w *world) {
				w.m.Schedule, w.m.Failover = slots.Must(slots.Every(5*time.Minute)), time.Minute
				w.local = 24*time.Hour + 4*time.Minute
				w.ledger[1] = rivals(w, 1, window)
			})
			all := pass(t, w, after, nil)
			if w.top() == 1 && after < window {
				release(w)
			}
			happens(w)
			for _, a := range append(all, pass(t, w, 70*time.Second-after, nil)...) {
				if g := grants([]asking{a}); len(g) > 0 && g[0].SlotStart.Equal(next) {
					return a.at - 24*time.Hour - 4*time.Minute, rest
				} else if len(g) > 0 {
					rest = append(rest, g[0])
				}
			}
			return 0, rest
		}
		taken := 0
		for after := 20 * time.Second; after < 52*time.Second; after += 510 * time.Millisecond {
			plain, none := run(after, func(*world) {})
			hinted, rest := run(after, func(w *world) { hint(t, w)() })
			switch turn := opens + time.Second; {
			case plain == 0 || len(none) > 0:
				t.Fatalf("released after %v, without a hint: the next slot at %v, of this one: %v", after, plain, none)
			case hinted == 0 || hinted > turn:
				t.Errorf("released after %v: the next slot is claimed at %v and not at %v", after, hinted, plain)
			case len(rest) > 0:
				taken++
				if end := rest[len(rest)-1].WindowEnd; after > opens || end.After(next) {
					t.Errorf("released after %v: of this slot, %v was taken", after, rest)
				}
			}
		}
		if taken < 55 || taken > 60 {
			t.Errorf("%d rests were taken of a window of %v, want those up to %v", taken, window, opens)
		}
	}
}

// While samples contradict one another, hints cost nothing, and one look at most when they no longer do.
func TestAHintWhileTheTimeIsInQuestion(t *testing.T) {
	run := func(happens func(*world)) (samples, reads int) {
		w := waiting(t, nil)
		w.turn(-10 * time.Second)
		must(t, w.event(machine.Wake{}))
		all := pass(t, w, 10*time.Second, func() { happens(w) })
		return len(all) - len(looks(all)), len(looks(all))
	}
	samples, reads := run(func(w *world) { must(t, w.event(machine.Wake{})) })
	hintedSamples, hintedReads := run(func(w *world) {
		if w.s.Clock.Unknown() {
			hint(t, w)()
		}
	})
	if samples == 0 || hintedSamples > samples || hintedReads > reads+1 {
		t.Errorf("%d samples and %d reads, and with hints %d and %d", samples, reads, hintedSamples, hintedReads)
	}
}
