package machine_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/internal/fuzzed"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Whatever happens, in whatever order, the rules hold: see watcher. FuzzSteps is
// the same under go's fuzzer.
func TestPropertyTheRulesHoldWhateverHappens(t *testing.T) { rapid.Check(t, anything) }

func FuzzSteps(f *testing.F) { f.Fuzz(fuzzed.Property(anything)) }

func drawnConfig(t *rapid.T) machine.Config {
	interval := rapid.SampledFrom([]time.Duration{100 * time.Millisecond, 3 * time.Second, 5 * time.Minute, 24 * time.Hour}).Draw(t, "every")
	rules := machine.Standard
	rules.Keep, rules.TrimEvery = 3, 2
	c := machine.Config{
		Rules: &rules, WorkerType: "mail", InstanceID: "w1",
		Group:      rapid.SampledFrom([]string{"", "", "eu"}).Draw(t, "group"),
		Priority:   rapid.IntRange(0, 7).Draw(t, "priority"),
		TieBreak:   rapid.SampledFrom([]priority.TieBreak{priority.Sticky, priority.Rotate, priority.Random}).Draw(t, "tie"),
		Schedule:   slots.Must(slots.Every(interval)),
		Lead:       rapid.SampledFrom([]time.Duration{0, 0, time.Second, priority.MaxLead}).Draw(t, "lead"),
		Margin:     min(max(interval/100, 10*time.Millisecond), 250*time.Millisecond),
		Joins:      rapid.Bool().Draw(t, "join"),
		Retention:  2 * time.Hour,
		MinBackoff: 100 * time.Millisecond, MaxBackoff: 5 * time.Second,
	}
	if rapid.IntRange(0, 2).Draw(t, "checks") == 0 {
		c.Checks, c.CheckEvery, c.CheckTimeout = true, interval/8, interval/16
		c.KeepsUnfit = rapid.IntRange(0, 3).Draw(t, "keeps") == 0
	}
	if rapid.IntRange(0, 3).Draw(t, "stalls") == 0 {
		c.Stall = interval / 4
	}
	return c
}

// span is a duration of any order of magnitude.
func span(most time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		unit := rapid.SampledFrom([]time.Duration{1, time.Millisecond, 20 * time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "unit")
		return min(unit*time.Duration(rapid.Int64Range(0, 100).Draw(t, "units")), most)
	})
}

// fate is what becomes of an operation.
func fate(t *rapid.T, w *world) machine.Event {
	switch rapid.IntRange(0, 15).Draw(t, "fate") {
	case 0:
		return w.reply(errTimeout, false, 0)
	case 1:
		return w.reply(errTimeout, true, 0)
	case 2:
		return w.reply(store.ErrConflict, true, 0)
	case 3:
		return w.reply(nil, false, rapid.IntRange(1, 5).Draw(t, "stale"))
	case 4:
		after := rapid.SampledFrom([]time.Duration{math.MinInt64, -1, 0, time.Second, time.Hour, math.MaxInt64}).Draw(t, "after")
		return w.reply(&store.ThrottledError{RetryAfter: after, Err: errTimeout}, false, 0)
	case 5:
		return w.reply(store.ErrInvalid, false, 0)
	}
	return w.reply(nil, false, 0)
}

// hostile is any record that can be found in a ledger.
func hostile(t *rapid.T, w *world) store.Record {
	head := w.ledger[w.top()]
	seq := min(w.top()+1, store.MaxSeq) // No store shows a higher one.
	if rapid.IntRange(0, 30).Draw(t, "high") == 0 {
		seq = rapid.SampledFrom([]int64{seq + 1000, store.MaxSeq - 1, store.MaxSeq}).Draw(t, "seq")
		seq = min(max(seq, w.top()+1), store.MaxSeq)
	}
	if rapid.IntRange(0, 30).Draw(t, "stray") == 0 {
		return store.Record{WorkerType: "mail", Seq: 0, Defect: "a stray key"}
	}
	if rapid.IntRange(0, 9).Draw(t, "defect") == 0 {
		return store.Record{WorkerType: "mail", Seq: seq, Defect: rapid.String().Draw(t, "why") + "?"}
	}
	off := span(48*time.Hour).Draw(t, "off")
	if rapid.IntRange(0, 3).Draw(t, "before") == 0 {
		off = -off
	}
	start := w.time().Add(off).Truncate(time.Millisecond)
	if rapid.Bool().Draw(t, "behind") && head.WindowEnd.After(start) {
		start = head.WindowEnd
	}
	r := store.Record{
		WorkerType: "mail", Seq: seq, Kind: store.KindGrant, InstanceID: "w2", Claim: fmt.Sprintf("other-%d", seq),
		WindowStart: start, WindowEnd: start.Add(time.Millisecond + span(400*24*time.Hour).Draw(t, "length")).Truncate(time.Millisecond),
		Token:    max(start.UnixMilli(), head.Token+1, 1),
		ReadAt:   w.time().Truncate(time.Millisecond),
		Schedule: rapid.SampledFrom([]string{w.m.Schedule.String(), "every 7m"}).Draw(t, "schedule"),
		Group:    rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "group"),
	}
	switch rapid.IntRange(0, 9).Draw(t, "odd") {
	case 0:
		r.Token = rapid.SampledFrom([]int64{1, r.Token + 1<<32, math.MaxInt64}).Draw(t, "token")
	case 1:
		r.ReadAt = time.Time{}
	case 2, 3, 4:
		r.Kind = rapid.SampledFrom([]store.Kind{store.KindRelease, store.KindReset, "done", "pause", store.KindOverride, store.KindOrder}).Draw(t, "kind")
		if head.Check() == nil { // it copies what is in force
			r.Claim, r.Group, r.Token = head.Claim, head.Group, head.Token
			r.WindowStart, r.WindowEnd = head.WindowEnd, head.WindowEnd
		}
		if r.Kind == store.KindOverride && rapid.IntRange(0, 3).Draw(t, "operator") > 0 {
			r.Claim, r.Token = fmt.Sprintf("operator-%d", seq), max(w.time().UnixMilli(), head.Token+1, 1)
			r.WindowStart = w.time().Add(span(time.Second).Draw(t, "since")).Truncate(time.Millisecond)
			r.WindowEnd = r.WindowStart
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "orders") == 0 {
		r.Orders = drawnOrders(t, w)
	}
	return r
}

// drawnOrders are orders of all kinds.
func drawnOrders(t *rapid.T, w *world) string {
	var orders []store.Order
	for range rapid.IntRange(1, 3).Draw(t, "count") {
		at := w.time().Add(-span(time.Hour).Draw(t, "ago")).Truncate(time.Millisecond)
		kinds := []store.OrderKind{store.OrderPause, store.OrderPrefer, store.OrderRelease, store.OrderDrain, "hologram"}
		orders = append(orders, store.Order{
			Kind:   rapid.SampledFrom(kinds).Draw(t, "order"),
			Target: rapid.SampledFrom([]string{"w1", "w2", w.s.Hold.Held.Claim, w.s.Hold.Next.Claim, "host"}).Draw(t, "target"),
			At:     at, Until: at.Add(span(48*time.Hour).Draw(t, "lasts")), Now: rapid.Bool().Draw(t, "now"),
		})
	}
	text, err := store.FormatOrders(orders)
	if err != nil { // No store gives what can't be read.
		return ""
	}
	return text
}

// stray is an event that nothing was done for.
func stray(t *rapid.T, w *world) machine.Event {
	var events []machine.Event
	for _, e := range []machine.Event{machine.Sampled{}, machine.HeadRead{}, machine.RecordRead{}, machine.Appended{}, machine.Trimmed{}, machine.Sighted{}} {
		if !answers(e, w.s.Pending) {
			events = append(events, e)
		}
	}
	if !w.live {
		events = append(events, machine.Panicked{}, machine.Skipped{}, machine.Skipped{Unwanted: true}, machine.Began{})
	}
	if !w.running {
		events = append(events, machine.Returned{})
	}
	return events[rapid.IntRange(0, len(events)-1).Draw(t, "stray")]
}

func anything(t *rapid.T) { befall(t, drawnConfig(t)) }

// befall lets anything happen to a worker.
func befall(t *rapid.T, c machine.Config) {
	w := newWorld(c)
	happen := func(e machine.Event) {
		t.Helper()
		err := w.event(e)
		w.draw = [12]byte(rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "draw"))
		// A wait may be due once more, but not for ever.
		for range 3 {
			if err == nil && w.idle(w.moment()) != nil {
				err = w.event(machine.Wake{})
			}
		}
		if err == nil && w.idle(w.moment()) != nil {
			w.local += time.Millisecond
			err = errors.Join(w.event(machine.Wake{}), w.idle(w.moment()))
		}
		if err != nil {
			t.Fatalf("%#v: %v", e, err)
		}
	}
	failures := 0
	work := func() machine.Work {
		failures++
		return machine.Work{Error: fmt.Sprint("failure ", failures)} // Each can be told apart.
	}
	happen(machine.Wake{})
	for range rapid.IntRange(10, 250).Draw(t, "steps") {
		switch what := rapid.IntRange(0, 29).Draw(t, "what"); {
		case w.op != nil && what < 14:
			happen(fate(t, w))
		case what < 14:
			if _, err := w.wait(); err != nil {
				t.Fatal(err)
			}
			happen(machine.Wake{})
		case what < 17:
			w.local += span(72*time.Hour).Draw(t, "pass")
			happen(machine.Wake{})
		case what < 20:
			_ = w.insert(hostile(t, w))
		case what < 22 && w.s.Eligibility.Asking && rapid.IntRange(0, 3).Draw(t, "answers") > 0:
			happen(machine.Judged{Err: rapid.SampledFrom([]error{nil, nil, errTimeout}).Draw(t, "unfit")})
		case what == 20 && len(w.adrift) > 0:
			_ = w.insert(w.adrift[0])
			w.adrift = w.adrift[1:]
		case what == 21:
			w.spread = rapid.SampledFrom([]time.Duration{0, 1, time.Millisecond, 50 * time.Millisecond, 5 * time.Second, time.Hour}).Draw(t, "spread")
			happen(machine.Wake{})
		case what == 22 && w.known:
			by := span(72*time.Hour).Draw(t, "by")
			if rapid.Bool().Draw(t, "back") {
				by = -by
			}
			w.turn(by)
			if w.op == nil || rapid.Bool().Draw(t, "seen") {
				happen(machine.Wake{})
			}
		case what == 23 && rapid.IntRange(0, 3).Draw(t, "loses") == 0:
			from := w.top() - rapid.Int64Range(0, 4).Draw(t, "lost")
			maps.DeleteFunc(w.ledger, func(seq int64, r store.Record) bool {
				lost := seq > 0 && seq >= from
				if lost {
					w.gone = append(w.gone, r)
				}
				return lost
			})
		case what == 23:
			happen(stray(t, w))
		case what == 24 && !w.live:
			w.late = rapid.IntRange(0, 3).Draw(t, "late") == 0
			w.alone = rapid.IntRange(0, 15).Draw(t, "alone") == 0
		case what == 24 && rapid.IntRange(0, 2).Draw(t, "falters") > 0:
			claim := rapid.SampledFrom([]string{w.s.Hold.Held.Claim, w.s.Hold.Left.Claim}).Draw(t, "claim")
			happen(rapid.SampledFrom([]machine.Event{
				machine.Faltered{Claim: claim, Work: work()},
				machine.Worked{Claim: claim, Failed: true, Work: work()},
			}).Draw(t, "how"))
		case what == 24:
			happen(machine.Panicked{Work: work()})
		case what == 25 && rapid.IntRange(0, 9).Draw(t, "stop") == 0:
			happen(machine.Stop{})
		case what == 26 && rapid.IntRange(0, 19).Draw(t, "giveup") == 0:
			happen(machine.GiveUp{})
		case what > 27 && w.running && c.Once && rapid.Bool().Draw(t, "finished"):
			happen(machine.Finished{Done: rapid.Bool().Draw(t, "done"), Work: work()})
		case what > 27 && w.running && c.Continuous && rapid.Bool().Draw(t, "rested"):
			happen(machine.Rested{})
		case what > 26 && w.running && !w.live:
			happen(machine.Returned{})
		case what > 26:
			happen(machine.Hinted{})
		}
	}
	happen(machine.Stop{})
	happen(machine.GiveUp{})
	if w.op != nil && !w.halted {
		happen(w.reply(errTimeout, false, 0))
	}
	if w.running {
		happen(machine.Returned{})
	}
	if !w.halted || w.s.Bid.Stage != machine.Halted || len(w.m.Waits(&w.s)) != 0 {
		t.Fatalf("not halted: %+v", w.s)
	}
	happen(machine.Wake{})
	for _, r := range w.adrift {
		_ = w.insert(r)
	}
	toldOnce(t, w)
}

// toldOnce demands that no outcome is told twice, unless what stood when it was told again explains it, also if that is lost or
// trimmed by now: a record that had forgotten that the slot is done, so that it would be run again if that weren't said again; or
// one at the key of the first, which was sent before, and has landed since.
func toldOnce(t *rapid.T, w *world) {
	told := map[string]int64{}
	for _, seq := range slices.Sorted(maps.Keys(w.ledger)) {
		r := w.ledger[seq]
		o, tells := r.Outcome()
		if !tells {
			continue
		}
		first := told[r.Metadata]
		told[r.Metadata] = seq
		stood := slices.AppendSeq(slices.Clone(w.gone), maps.Values(w.ledger))
		forgotten := slices.ContainsFunc(stood, func(of store.Record) bool {
			return o.Result == store.Succeeded && first <= of.Seq && of.Seq < seq && of.DoneUntil.Before(w.ledger[first].DoneUntil)
		})
		hidden := w.landed[first] >= w.asked[r] && slices.ContainsFunc(w.gone, func(of store.Record) bool { return of.Seq == first })
		if first != 0 && !forgotten && !hidden {
			t.Fatalf("%s is told by seq %d and %d", r.Metadata, first, seq)
		}
	}
}

// The same where leases are extended, and work is done once per slot.
func TestPropertyTheRulesHoldWhereLeasesAreExtended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawnConfig(t)
		c.Group = ""
		interval := c.Schedule.At(time.Unix(0, 0)).Length()
		if d := interval / time.Duration(rapid.IntRange(2, 8).Draw(t, "parts")); d >= machine.MinFailover(c.Margin) {
			c.Failover = d
		}
		c.Lead = min(c.Lead, c.Failover/2)
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
		case 1:
			c.Continuous, c.NoFailback = true, rapid.Bool().Draw(t, "stays")
		case 2:
			c.Once, c.CatchUp = true, machine.CatchUp(rapid.IntRange(0, 2).Draw(t, "late"))
			c.MaxAttempts = rapid.IntRange(0, 3).Draw(t, "attempts")
		}
		befall(t, c)
	})
}
