package workerlease_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// These are slots of a job that pass while nobody who would say so sees the ledger.

// The holder dies, and its standby is cut off from the store for longer than slots last: it says of each that nobody had it.
func TestAStandbyThatWasCutOffSaysWhichSlotsNobodyHad(t *testing.T) {
	for name, c := range map[string]struct {
		failover time.Duration
		dies     time.Duration // in the run of the slot from 00:01, which goes on until then
		off, on  time.Duration // when the standby is cut off
		want     []int
	}{
		"in the slot of the run":      {0, time.Minute + 10*time.Second, time.Minute + 10*time.Second, 4*time.Minute + 40*time.Second, []int{2, 3, 4}},
		"in a slot that it goes into": {30 * time.Second, 2*time.Minute + time.Second, 2*time.Minute + 10*time.Second, 4*time.Minute + 40*time.Second, []int{2, 3, 4}},
		"not at all":                  {30 * time.Second, 2*time.Minute + time.Second, 8 * time.Minute, 9 * time.Minute, []int{2}},
	} {
		bubble(t, name, func(t *testing.T) {
			inner, link := cut(t)
			other := faultstore.New(inner, faultstore.Options{})
			w := newWorking(map[time.Duration]time.Duration{time.Minute: time.Hour})
			o := minutely("victim", 0)
			o.FailoverWithin = c.failover
			runsAtOnce(t, link, o, w.run)
			o.InstanceID, o.Priority = "b", 1
			b := runsAtOnce(t, other, o, w.run)
			at(min(c.dies, c.off))
			if c.off == c.dies {
				other.Break(faultstore.Down())
			}
			at(c.dies)
			link.Break(faultstore.Down())
			at(c.off)
			other.Break(faultstore.Down())
			at(c.on)
			other.Mend()
			at(c.on + time.Minute + 30*time.Second)
			equal(t, "missed", toldMissed(b.worker), minutes(c.want...)...)
			link.Mend()
		})
	}
}

// Of slots that may be run late, those are missed that are not.
func TestASlotThatMayBeRunLateIsMissedOnceItIsNot(t *testing.T) {
	for name, c := range map[string]struct {
		catchUp workerlease.CatchUp
		want    []int
	}{
		"newest": {workerlease.CatchUpNewest, []int{3, 4}},
		"all":    {workerlease.CatchUpAll, nil},
	} {
		bubble(t, name, func(t *testing.T) {
			j := &job{}
			j.do = func(ctx context.Context, l workerlease.Lease, _ int) error {
				if since(l.Slot.Start) == 2*time.Minute && time.Since(t0) < 5*time.Minute+50*time.Second {
					return errWork
				}
				return waits(ctx, time.Second)
			}
			o := minutely("a", 0)
			o.Job.CatchUp, o.Job.MaxAttempts = c.catchUp, 0
			if c.catchUp == workerlease.CatchUpAll {
				o.Job.MaxAttempts = 50
			}
			w := start(t, setup{asGiven: true, Options: o, task: j.run})
			at(9*time.Minute + 30*time.Second)
			ran := map[time.Duration]bool{}
			for _, slot := range j.ran() {
				ran[slot] = true
			}
			missed := map[time.Duration]bool{}
			for _, slot := range toldMissed(w) {
				missed[slot] = true
			}
			for m := 1; m <= 9; m++ {
				if slot := time.Duration(m) * time.Minute; ran[slot] == missed[slot] {
					t.Errorf("the slot of minute %d was run: %v, and is said to be missed: %v", m, ran[slot], missed[slot])
				}
			}
		})
	}
}

// The night is too long ago to be run late, or was never done: who comes says at once that it is missed.
func TestANightThatIsNotRunLateIsMissedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		within time.Duration
		before error // of the night before, which is then given up
		missed []time.Duration
	}{
		"too long ago": {6 * time.Hour, nil, []time.Duration{night}},
		"to be run":    {0, nil, nil},
		"never done":   {0, errWork, []time.Duration{night}},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			task := func(ctx context.Context, l workerlease.Lease) error { return cmp.Or(c.before, waits(ctx, time.Minute)) }
			o := nightly("first")
			o.Job.CatchUp, o.Job.CatchUpWithin, o.Job.MaxAttempts = workerlease.CatchUpNewest, c.within, 1
			first := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: o, task: task})
			at(3 * time.Hour)
			first.stop(t)
			at(night + 12*time.Hour)
			o.InstanceID = "fresh"
			fresh := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: o, task: task})
			at(night + 12*time.Hour + time.Minute)
			var missed []time.Duration
			for _, e := range observed[event.Missed](fresh) {
				missed = append(missed, since(e.Slot.Start))
			}
			equal(t, "missed", missed, c.missed...)
		})
	}
}

// Who waits for a boundary knows as much as all others meanwhile: whether the night is done, or missed.
func TestWhoWaitsForABoundaryKnowsWhatBecameOfTheNight(t *testing.T) {
	for name, c := range map[string]struct {
		stops, due time.Duration
		missed     int
	}{
		"it is done":   {night + time.Hour, night + 25*time.Hour, 0},
		"it is missed": {night - time.Hour, night + time.Hour, 1},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			j := &job{do: heeds(time.Minute)}
			first := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: nightly("first"), task: j.run})
			at(c.stops)
			first.stop(t)
			at(night + 12*time.Hour)
			o := nightly("fresh")
			o.WaitForBoundary = true
			fresh := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: o, task: j.run})
			at(night + 12*time.Hour + time.Minute)
			if missed, s := observed[event.Missed](fresh), fresh.Status(); len(missed) != c.missed || since(s.Due) != c.due {
				t.Errorf("missed %+v, due by %v, want %d, and %v", missed, since(s.Due), c.missed, c.due)
			}
		})
	}
}

// A nightly job becomes an hourly one: no hour before that was due.
func TestAnotherScheduleMakesNoSlotBeforeItDue(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{do: heeds(time.Minute)}
		nights := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: nightly("nights"), task: j.run})
		at(night + 12*time.Hour + 29*time.Minute)
		nights.stop(t)
		o := nightly("hours")
		o.Schedule = slots.Must(slots.Every(time.Hour))
		hours := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: o, task: j.run})
		for _, c := range []struct{ at, due time.Duration }{{12*time.Hour + 40*time.Minute, 13*time.Hour + 15*time.Minute}, {13*time.Hour + 40*time.Minute, 14*time.Hour + 15*time.Minute}} {
			at(night + c.at)
			if missed, due := observed[event.Missed](hours), since(hours.Status().Due); len(missed) > 0 || due != night+c.due {
				t.Errorf("at %v missed %+v, and due by %v, want none, and %v", night+c.at, missed, due, night+c.due)
			}
		}
	})
}

// A run goes on into later slots, where it fails: its worker has said that they are skipped, and nobody says more. If it dies, a standby
// says so as soon as its lease is over.
func TestWhatAStandbySaysOfARunThatEndsAfterItsSlot(t *testing.T) {
	for name, dies := range map[string]bool{"fails": false, "dies": true} {
		bubble(t, name, func(t *testing.T) {
			inner, link := cut(t)
			o := nightly("holder")
			o.Schedule, o.FailoverWithin, o.Job.MaxAttempts = slots.Must(slots.Every(time.Hour)), time.Minute, 1
			task := func(ctx context.Context, _ workerlease.Lease) error {
				if err := waits(ctx, 100*time.Minute); err != nil {
					return err
				}
				return errWork
			}
			at(time.Minute)
			start(t, setup{asGiven: true, ledger: link, Options: o, task: task})
			o.InstanceID, o.Priority = "standby", 1
			b := start(t, setup{asGiven: true, ledger: inner.Handle(), Options: o, task: task})
			at(90 * time.Minute)
			if dies {
				link.Break(faultstore.Down())
			}
			at(103 * time.Minute)
			died, missed := observed[event.WorkerDied](b), observed[event.Missed](b)
			if want := map[bool]int{true: 1}[dies]; len(died) != want || len(missed) != want {
				t.Errorf("within 3 minutes it says %d times that a worker died, and %d that a slot was missed, want %d", len(died), len(missed), want)
			}
			link.Mend()
		})
	}
}

// Workers of two schedules share a type for long: what is done by the other one makes no slot due that was before it.
func TestWhatAnotherScheduleHasDoneIsNotDueAnyMore(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{do: heeds(time.Minute)}
		o := nightly("hours")
		o.Schedule = slots.Must(slots.Every(time.Hour))
		hours := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: o, task: j.run})
		at(5*time.Hour + 30*time.Minute)
		o.InstanceID, o.Schedule, o.Priority = "halves", slots.Must(slots.Every(30*time.Minute)), 7
		halves := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: o, task: j.run})
		for hour := 6; hour < 12; hour++ {
			at(time.Duration(hour)*time.Hour + 10*time.Minute)
			for _, w := range []*worker{hours, halves} {
				if due := since(w.Status().Due); due < time.Since(t0) {
					t.Errorf("at %v %s says that the job is overdue since %v", time.Since(t0), w.Status().InstanceID, due)
				}
			}
		}
	})
}

// A trigger's run keeps others from a slot. When its worker dies, the slot is begun, or told, and not both.
func TestASlotInWhichATriggersRunEndsIsBegunOrTold(t *testing.T) {
	for name, c := range map[string]struct {
		comes time.Duration // who has to take over; 0: it stands by
		want  []int
	}{"who stands by begins it": {0, nil}, "who comes later tells it": {4*time.Minute + 40*time.Second, []int{3, 4}}} {
		bubble(t, name, func(t *testing.T) {
			inner, link := cut(t)
			j := &job{do: func(ctx context.Context, l workerlease.Lease, _ int) error {
				if l.Triggered {
					return waits(ctx, 50*time.Second)
				}
				return waits(ctx, time.Second)
			}}
			o := minutely("a", 0)
			o.Job.MaxAttempts = 1
			start(t, setup{asGiven: true, ledger: link, Options: o, task: j.run})
			o.InstanceID, o.Priority = "b", 1
			other := setup{asGiven: true, ledger: inner.Handle(), Options: o, task: j.run}
			var b *worker
			if c.comes == 0 {
				b = start(t, other)
			}
			at(2*time.Minute + 45*time.Second)
			_, err := operate.On(inner.Handle()).Give(t.Context(), operate.Order{WorkerType: "job", Kind: store.OrderTrigger, For: 10 * time.Minute, InstanceID: "ann"})
			must(t, err)
			at(3*time.Minute + 30*time.Second)
			link.Break(faultstore.Down())
			if c.comes > 0 {
				at(c.comes)
				b = start(t, other)
			}
			at(6*time.Minute + 50*time.Second)
			equal(t, "missed", toldMissed(b), minutes(c.want...)...)
			link.Mend()
		})
	}
}

// A worker is cut off from the store between its short runs, while another runs slot after slot: nobody has missed any.
func TestAWorkerThatWasCutOffTellsNoSlotThatOthersRun(t *testing.T) {
	for on := 4*time.Minute + 2*time.Second; on < 5*time.Minute; on += 4 * time.Second {
		bubble(t, on.String(), func(t *testing.T) {
			inner := memory.New(memory.Options{})
			j := &job{do: func(ctx context.Context, l workerlease.Lease, _ int) error {
				if since(l.Slot.Start) == 4*time.Minute {
					return waits(ctx, 57*time.Second)
				}
				return waits(ctx, time.Second)
			}}
			o := minutely("a", 0)
			o.Job.Overrun = workerlease.Stop
			start(t, setup{asGiven: true, ledger: inner.Handle(), Options: o, task: j.run})
			o.InstanceID, o.Priority = "b", 1
			b := start(t, setup{asGiven: true, ledger: struck(t, inner.Handle(), during(2*time.Minute+36*time.Second, on, faultstore.Down())), Options: o, task: j.run})
			at(8*time.Minute + 30*time.Second)
			equal(t, "missed", toldMissed(b))
		})
	}
}

// A slot is claimed ahead, and its worker stops before it begins: who comes later tells it, with those after it.
func TestASlotThatWasGivenBackBeforeItBeganIsTold(t *testing.T) {
	for _, catchUp := range []workerlease.CatchUp{workerlease.CatchUpNone, workerlease.CatchUpNewest} {
		bubble(t, catchUp.String(), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			j := &job{each: time.Second}
			o := minutely("a", 0)
			o.Job.CatchUp = catchUp
			a := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: o, task: j.run})
			at(3*time.Minute - time.Second)
			a.stop(t)
			at(5*time.Minute + 30*time.Second)
			o.InstanceID = "b"
			b := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: o, task: j.run})
			at(6*time.Minute + 30*time.Second)
			ran, missed := map[time.Duration]bool{}, map[time.Duration]bool{}
			for _, slot := range j.ran() {
				ran[slot] = true
			}
			for _, slot := range toldMissed(b) {
				missed[slot] = true
			}
			for _, slot := range minutes(3, 4, 5) {
				if ran[slot] == missed[slot] {
					t.Errorf("the slot of %v was run: %v, and is said to be missed: %v", slot, ran[slot], missed[slot])
				}
			}
		})
	}
}

// A slot that was kept back, since it might have been run late, is told although a later one was told before it.
func TestASlotThatWasKeptBackIsToldAfterALaterOne(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		w := newWorking(map[time.Duration]time.Duration{3 * time.Minute: 95 * time.Second})
		o := minutely("a", 0)
		o.Job.CatchUp = workerlease.CatchUpNewest
		gone := runsAtOnce(t, ledger.Handle(), o, w.run)
		at(90 * time.Second)
		gone.cancel()
		at(3*time.Minute + 20*time.Second)
		o.InstanceID = "b"
		a := runsAtOnce(t, ledger.Handle(), o, w.run)
		at(4*time.Minute + 50*time.Second) // Slot 4 began amid the late run of slot 3, and slot 5 is paused.
		pause(t, ledger.Handle(), 6*time.Minute+30*time.Second, false)
		at(8 * time.Minute)
		told := map[time.Duration]int{}
		for _, e := range observed[event.Missed](a.worker) {
			for at := since(e.Slot.Start); at < since(e.Until); at += time.Minute {
				told[at]++
			}
		}
		for _, e := range observed[event.Skipped](a.worker) {
			told[since(e.Slot.Start)]++
		}
		for _, slot := range minutes(4, 5) {
			if ran := len(w.of(slot)); told[slot]+ran != 1 {
				t.Errorf("the slot of %v is told %d times, and run %d times", slot, told[slot], ran)
			}
		}
	})
}

// What a run has skipped, as its worker has said, is not missed by one that comes later.
func TestWhatWasSkippedIsNotMissedByWhoComesLater(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		w := newWorking(map[time.Duration]time.Duration{time.Minute: time.Hour})
		a := runs(t, ledger.Handle(), minutely("a", 0), w.run)
		at(3*time.Minute + 40*time.Second)
		a.cancel()
		at(4*time.Minute + 50*time.Second)
		b := runsAtOnce(t, ledger.Handle(), minutely("b", 0), w.run)
		at(5*time.Minute + 30*time.Second)
		var skipped, missed []time.Duration
		for _, e := range observed[event.Skipped](a.worker) {
			skipped = append(skipped, since(e.Slot.Start))
		}
		for _, e := range observed[event.Missed](b.worker) {
			for at := since(e.Slot.Start); at < since(e.Until); at += time.Minute {
				missed = append(missed, at)
			}
		}
		equal(t, "skipped", skipped, minutes(2, 3)...)
		equal(t, "missed", missed, minutes(4)...)
	})
}
