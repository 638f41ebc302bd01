package workerlease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// override overrides the newest record, as an operator does.
func override(t *testing.T, l store.Ledger, o operate.OverrideOptions) store.Record {
	t.Helper()
	o.WorkerType, o.InstanceID = "job", "operator"
	if o.Seq == 0 {
		o.Seq = newest(t, l).Seq
	}
	r, err := operate.On(l).Override(t.Context(), o)
	must(t, err)
	return r
}

// What leaves nothing to claim for long is over with an override, and workers lead again in
// their next slot. They are jobs, so that what is done counts as well.
func TestWorkersLeadAgainWithinASlotAfterAnOverride(t *testing.T) {
	year := t0.AddDate(1, 0, 0)
	grant := func(seq int64) store.Record { return planted(seq, 0, time.Minute) }
	for name, test := range map[string]struct {
		put  func(l *memory.Ledger)
		done time.Duration // up to which slots are done then; 0: none
	}{
		"a grant for a year": {put: func(l *memory.Ledger) {
			r := grant(1)
			r.WindowEnd = year
			l.Put(r)
		}},
		"a reset a year ahead": {put: func(l *memory.Ledger) {
			r := grant(1)
			r.Kind, r.WindowStart, r.WindowEnd = store.KindReset, year, year
			l.Put(r)
		}},
		"slots done for a year": {done: 4 * time.Minute, put: func(l *memory.Ledger) {
			r, below := grant(2), grant(1)
			below.WindowEnd, below.DoneUntil = t0.Add(time.Second), t0.Add(4*time.Minute)
			l.Put(below)
			r.WindowStart, r.Claim, r.Token, r.DoneUntil = below.WindowEnd, "4567", below.Token+1000, year
			l.Put(r)
		}},
		"nothing but poison": {put: func(l *memory.Ledger) {
			for seq := range int64(40) {
				l.Put(store.Record{WorkerType: "job", Seq: 207 + seq, Defect: "not a record"})
			}
		}},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			test.put(ledger)
			var all []*worker
			for n := range 2 {
				o := named(string(rune('a'+n)), n)
				o.Job = &workerlease.Job{}
				all = append(all, start(t, setup{Options: o, ledger: ledger.Handle(), task: idle}))
			}
			at(3*time.Hour + 2*time.Minute)
			if n := len(observed[event.Allocated](all[0])) + len(observed[event.Allocated](all[1])); n > 0 {
				t.Fatalf("%d leases before the override, want none", n)
			}
			head := newest(t, ledger)
			r := override(t, ledger.Handle(), operate.OverrideOptions{Reason: "nobody works by it"})
			if r.Kind != store.KindOverride || r.Seq != head.Seq+1 || !r.WindowStart.Equal(r.WindowEnd) || r.Token <= head.Token || r.Metadata != "nobody works by it" || r.InstanceID != "operator" {
				t.Errorf("override = %+v", r)
			}
			if took := since(r.WindowStart) - 3*time.Hour - 2*time.Minute; took < 0 || took > time.Second {
				t.Errorf("it ends what is in force %v after it was written", took)
			}
			if want := t0.Add(test.done); test.done > 0 && !r.DoneUntil.Equal(want) || test.done == 0 && !r.DoneUntil.IsZero() {
				t.Errorf("slots are done up to %v, want %v", r.DoneUntil, want)
			}
			at(3*time.Hour + 6*time.Minute)
			begun := append(observed[event.Allocated](all[0]), observed[event.Allocated](all[1])...)
			// Whoever waits for the end of what is overridden hears of it, and takes the rest of the slot.
			for len(begun) > 1 && since(begun[0].Lease.Slot.Start) == 3*time.Hour && begun[0].Lease.Token > r.Token {
				begun = begun[1:]
			}
			if len(begun) != 1 || since(begun[0].Lease.Slot.Start) != 3*time.Hour+5*time.Minute || begun[0].Lease.Token <= r.Token {
				t.Errorf("leases in the slot after it: %+v, want one, with a token above %d", begun, r.Token)
			}
			at(5 * time.Hour)
			for _, w := range all {
				if s := w.Status(); !s.Healthy() {
					t.Errorf("status %v, want it healthy", s)
				}
			}
			if n := len(observed[event.SlotDone](all[0])) + len(observed[event.SlotDone](all[1])); n < 22 {
				t.Errorf("%d slots done in the two hours after it, want all", n)
			}
		})
	}
}

// A worker that is through with a slot leaves it to others, also if its claim was overridden before the slot began, and
// it reads that only now.
func TestASlotThatAWorkerIsThroughWithStaysSoAfterAnOverride(t *testing.T) {
	for name, work := range map[string]workerlease.Task{
		"fails":  func(context.Context, workerlease.Lease) error { return errors.New("no") },
		"panics": func(context.Context, workerlease.Lease) error { panic("no") },
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			w := start(t, setup{ledger: ledger.Handle(), Options: named("w", 0), task: func(ctx context.Context, l workerlease.Lease) error {
				time.Sleep(time.Minute)
				return work(ctx, l)
			}})
			at(4*time.Minute + 55*time.Second)
			if r := override(t, ledger.Handle(), operate.OverrideOptions{}); r.Seq == 1 {
				t.Fatal("nothing was claimed before the override")
			}
			at(14 * time.Minute)
			var slots []time.Duration
			for _, e := range observed[event.Allocated](w) {
				slots = append(slots, since(e.Lease.Slot.Start))
			}
			equal(t, "slots", slots, minutes(5, 10)...)
		})
	}
}

// A holder whose term is overridden stops when it reads that: it neither extends the term nor
// releases it, and claims the rest as any other.
func TestAHolderStopsWhenItSeesThatItIsOverridden(t *testing.T) {
	bubble(t, "by an extension", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := parted("a", 0, 40*time.Second)
		a := start(t, setup{Options: o, ledger: ledger.Handle()})
		at(5*time.Minute + 5*time.Second)
		if !a.IsHolder() {
			t.Fatal("a has no lease")
		}
		r := override(t, ledger.Handle(), operate.OverrideOptions{})
		at(5*time.Minute + 40*time.Second)
		u := a.turn(t, 0)
		if u.why != workerlease.RecordVanished || !errors.Is(u.cause, workerlease.ErrRecordVanished) || u.expiries != 1 || u.ended > 5*time.Minute+40*time.Second {
			t.Errorf("a's lease ended at %v because of %q (%v), want by the override", u.ended, u.why, u.cause)
		}
		if e := observed[event.Vanished](a); len(e) != 1 || !strings.Contains(e[0].Err.Error(), "operator has overridden it by seq") {
			t.Errorf("Vanished events = %v, want one that names the operator", e)
		}
		at(9 * time.Minute)
		if next := a.turn(t, 1); next.lease.Token <= r.Token || next.lease.Start.Before(r.WindowEnd) || !a.IsHolder() {
			t.Errorf("then a has %+v, want a new term after the override, %+v", next.lease, r)
		}
		for _, each := range records(t, ledger) {
			if each.Seq > r.Seq && each.Token < r.Token || each.Kind == store.KindRelease {
				t.Errorf("%+v follows the override", each)
			}
		}
	})
	bubble(t, "at its next slot", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		a := start(t, setup{Options: named("a", 0), ledger: ledger.Handle()})
		at(6 * time.Minute)
		r := override(t, ledger.Handle(), operate.OverrideOptions{})
		o := named("b", 1)
		b := start(t, setup{Options: o, joins: true, ledger: ledger.Handle()})
		at(7 * time.Minute)
		// This is the risk: a can't know yet.
		if !a.IsHolder() || !b.IsHolder() {
			t.Fatalf("a works: %v, b: %v", a.IsHolder(), b.IsHolder())
		}
		if a.turn(t, 0).lease.Token >= r.Token || b.turn(t, 0).lease.Token <= r.Token {
			t.Error("tokens don't tell a's term from b's")
		}
		at(10*time.Minute - time.Second)
		if u := a.turn(t, 0); u.why != workerlease.RecordVanished || u.ended < 10*time.Minute-lead {
			t.Errorf("a's lease ended at %v because of %q, want that when it looked", u.ended, u.why)
		}
		if e := observed[event.Vanished](a); len(e) != 1 {
			t.Errorf("Vanished events = %v, want one", e)
		}
		at(21 * time.Minute)
		apart(t, &worker{turns: a.turns[1:]}, b)
	})
	bubble(t, "when it stops", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		a := start(t, setup{Options: named("a", 0), ledger: ledger.Handle()})
		at(6 * time.Minute)
		r := override(t, ledger.Handle(), operate.OverrideOptions{})
		a.stop(t)
		if head := newest(t, ledger); head.Seq != r.Seq {
			t.Errorf("%+v follows the override of a worker that stops", head)
		}
	})
	bubble(t, "before it begins", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := named("a", 0)
		o.LeaseInterval, o.Job = time.Hour, &workerlease.Job{MinRetry: time.Minute}
		var second event.Claimed
		claims := 0
		a := start(t, setup{
			Options: o, ledger: ledger.Handle(),
			task: func(context.Context, workerlease.Lease) error { return errors.New("not yet") },
			// The second attempt is granted, and hasn't begun: the worker looks at the head first.
			observe: func(e event.Event) {
				if c, ok := e.(event.Claimed); ok {
					if claims++; claims == 2 {
						second = c
						if _, err := operate.On(ledger.Handle()).Override(t.Context(), operate.OverrideOptions{WorkerType: "job", Seq: c.Seq}); err != nil {
							t.Error(err)
						}
					}
				}
			},
		})
		at(110 * time.Minute)
		for _, e := range observed[event.Allocated](a) {
			if e.Lease.Token == second.Token {
				t.Errorf("%+v began after it was overridden", e.Lease)
			}
		}
		if e := observed[event.Vanished](a); len(e) != 1 || e[0].Seq != second.Seq {
			t.Errorf("Vanished events = %v, want one of seq %d", e, second.Seq)
		}
		at(3 * time.Hour)
		if n := len(observed[event.Allocated](a)); n < 3 {
			t.Errorf("%d leases, want more in the next slot", n)
		}
	})
}

// Who looks at the ledger sees that nobody holds the lease any more: also if a done record
// stands above the override, which repeats its term.
func TestAnOverriddenHolderIsShownNoMore(t *testing.T) {
	for name, above := range map[string]bool{"an override": false, "an override below a done record": true} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			far := planted(1, 0, time.Hour)
			far.SlotEnd = t0.Add(2 * time.Hour)
			ledger.Put(far)
			w := start(t, setup{ledger: ledger.Handle(), Options: workerlease.Options{InstanceID: "a", LeaseInterval: 10 * time.Minute, Job: &workerlease.Job{}}, task: func(context.Context, workerlease.Lease) error { return nil }})
			at(11 * time.Minute)
			if h, ok := w.Holder(); !ok || h.InstanceID != "stranger" {
				t.Fatalf("Holder() = %+v, %v, want the stranger", h, ok)
			}
			r := override(t, ledger.Handle(), operate.OverrideOptions{})
			if above {
				done := r
				done.Seq, done.Kind, done.DoneUntil = r.Seq+1, store.KindDone, t0.Add(40*time.Minute)
				ledger.Put(done)
			}
			at(20*time.Minute - time.Second)
			e := observed[event.HolderChanged](w)
			if h, ok := w.Holder(); ok {
				t.Errorf("Holder() = %+v, want nobody", h)
			}
			if !above && (len(e) < 2 || !e[1].Released || e[1].Holder.InstanceID != "stranger" || !e[1].Holder.Until.Equal(r.WindowStart)) {
				t.Errorf("HolderChanged events = %+v, want that the stranger's lease has ended", e)
			}
		})
	}
}

func TestAnOverrideOfAnotherHeadWritesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		put  func(l *memory.Ledger)
		seq  int64
		want string
	}{
		"a newer record":   {func(l *memory.Ledger) { l.Put(planted(1, 0, time.Minute)) }, 2, "workers go by record 1, not 2"},
		"an older record":  {func(l *memory.Ledger) { l.Put(planted(8, 0, time.Minute)) }, 7, "workers go by record 8, not 7"},
		"an empty ledger":  {func(*memory.Ledger) {}, 1, "there is no record that workers go by"},
		"above a free key": {func(l *memory.Ledger) { l.Put(planted(1, 0, time.Minute)); l.Put(planted(900, 0, time.Minute)) }, 900, "workers go by record 1, not 900"},
		"a key that is odd": {func(l *memory.Ledger) {
			l.Put(planted(3, 0, time.Minute))
			l.Put(planted(store.MaxSeq+1, 0, time.Minute))
		}, 4, "workers go by record 3, not 4"},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			test.put(ledger)
			before := len(records(t, ledger))
			_, err := operate.On(ledger).Override(t.Context(), operate.OverrideOptions{WorkerType: "job", Seq: test.seq})
			if !errors.Is(err, operate.ErrHeadMoved) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Override() = %v, want %q", err, test.want)
			}
			if n := len(records(t, ledger)); n != before {
				t.Errorf("%d records, want %d", n, before)
			}
		})
	}
}

// Whatever becomes of the append, the answer is what is so, as far as that can be known.
func TestOverrideSaysWhetherItIsStored(t *testing.T) {
	other := planted(2, time.Minute, 2*time.Minute)
	for name, test := range map[string]struct {
		appending, reading faultstore.Fault
		meanwhile          bool
		want               error
		stored             bool
	}{
		"the reply is lost":                 {appending: faultstore.LostReply(), stored: true},
		"the driver has sent it twice":      {appending: faultstore.OwnConflict(), stored: true},
		"it isn't stored":                   {appending: faultstore.Failure(), want: operate.ErrOverrideUnknown},
		"it isn't allowed":                  {appending: faultstore.Fault{Effect: faultstore.Dropped, Err: store.ErrDenied}, want: store.ErrDenied},
		"it can't be read back":             {appending: faultstore.LostReply(), reading: faultstore.Failure(), want: operate.ErrOverrideUnknown, stored: true},
		"another was faster":                {meanwhile: true, want: operate.ErrHeadMoved},
		"another was faster, and no answer": {meanwhile: true, appending: faultstore.Failure(), want: operate.ErrHeadMoved},
	} {
		bubble(t, name, func(t *testing.T) {
			inner := memory.New(memory.Options{})
			inner.Put(planted(1, 0, 30*time.Second))
			l := faultstore.New(inner, faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
				switch c.Op {
				case faultstore.OpAppend:
					if test.meanwhile {
						inner.Put(other)
					}
					return test.appending
				case faultstore.OpGet:
					return test.reading
				default:
					return faultstore.Fault{}
				}
			}})
			r, err := operate.On(l).Override(t.Context(), operate.OverrideOptions{WorkerType: "job", Seq: 1})
			if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || errors.Is(err, operate.ErrOverrideUnknown) != (test.want == operate.ErrOverrideUnknown) || err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("Override() = %v, want %v", err, test.want)
			}
			head := newest(t, inner)
			if stored := head.Kind == store.KindOverride; stored != test.stored || err == nil && head != r.Truncated() {
				t.Errorf("the head is %+v, and Override() = %+v", head, r)
			}
		})
	}
}

func TestAnOverrideNeedsTheTimeAndSoundOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		inner.Put(planted(1, 0, time.Minute))
		n := 0
		turns := faultstore.New(inner, faultstore.Options{Plan: func(faultstore.Call) faultstore.Fault {
			n++
			return faultstore.OtherServer("", time.Duration(n%2)*time.Hour)
		}})
		if _, err := operate.On(turns).Override(t.Context(), operate.OverrideOptions{WorkerType: "job", Seq: 1}); !errors.Is(err, operate.ErrTimeUnknown) {
			t.Errorf("Override() where answers contradict each other = %v", err)
		}
		slow := faultstore.New(inner, faultstore.Options{Plan: eachCall(faultstore.Fault{Before: 10 * time.Minute})})
		if _, err := operate.On(slow).Override(t.Context(), operate.OverrideOptions{WorkerType: "job", Seq: 1}); !errors.Is(err, operate.ErrTimeUnknown) {
			t.Errorf("Override() in a store that answers after 10 min = %v", err)
		}
		for want, o := range map[string]operate.OverrideOptions{
			"WorkerType: is empty":        {Seq: 1},
			"Seq: is 0: must be":          {WorkerType: "job"},
			"InstanceID: has 257 bytes":   {WorkerType: "job", Seq: 1, InstanceID: strings.Repeat("x", 257)},
			"Reason: has 8193 bytes":      {WorkerType: "job", Seq: 1, Reason: strings.Repeat("x", store.MaxMetadata+1)},
			"must be at most 366 days":    {WorkerType: "job", Seq: 1, DoneUntil: t0.AddDate(3, 0, 0)},
			"Reason: has a NUL at byte 1": {WorkerType: "job", Seq: 1, Reason: "x\x00"},
		} {
			if _, err := operate.On(inner).Override(t.Context(), o); !errors.Is(err, workerlease.ErrOptions) || !strings.Contains(err.Error(), want) {
				t.Errorf("Override(%+v) = %v, want %q", o, err, want)
			}
		}
		if n := len(records(t, inner)); n != 1 {
			t.Errorf("%d records, want the one there was", n)
		}
		if r := override(t, inner, operate.OverrideOptions{DoneUntil: t0.Add(time.Hour)}); !r.DoneUntil.Equal(t0.Add(time.Hour)) {
			t.Errorf("slots are done up to %v, want what was said", r.DoneUntil)
		}
	})
}
