package workerlease_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// ran are the slots that were run, in order.
func (j *job) ran() (all []time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.calls {
		all = append(all, c.slot)
	}
	return all
}

func TestMissedSlotsAreCaughtUpAtOnceAsAJobAsks(t *testing.T) {
	for _, c := range []struct {
		how    workerlease.CatchUp
		within time.Duration
		back   time.Duration // when workers are there again
		want   []int
	}{
		{workerlease.CatchUpNone, 0, 13*time.Minute + 5*time.Second, []int{5, 13, 14}},
		{workerlease.CatchUpNewest, 0, 13*time.Minute + 5*time.Second, []int{5, 12, 13, 14}},
		{workerlease.CatchUpAll, 0, 13*time.Minute + 5*time.Second, []int{5, 6, 7, 8, 9, 10, 11, 12, 13, 14}},
		{workerlease.CatchUpAll, 200 * time.Second, 13*time.Minute + 5*time.Second, []int{5, 10, 11, 12, 13, 14}},
		// They come too late for the slot in which they start.
		{workerlease.CatchUpNone, 0, 13*time.Minute + 30*time.Second, []int{5, 14}},
		{workerlease.CatchUpNewest, 0, 13*time.Minute + 30*time.Second, []int{5, 13, 14}},
		{workerlease.CatchUpAll, 150 * time.Second, 13*time.Minute + 30*time.Second, []int{5, 12, 13, 14}},
	} {
		bubble(t, fmt.Sprint(c.how, c.within, c.back), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			j := &job{each: time.Second}
			o := minutely("a", 0)
			o.Job.CatchUp, o.Job.CatchUpWithin = c.how, c.within
			at(5*time.Minute + time.Second)
			first := runsAtOnce(t, ledger.Handle(), o, j.run)
			at(5*time.Minute + 30*time.Second)
			first.cancel()
			at(c.back)
			late := []time.Duration{}
			for n, name := range []string{"b", "c"} {
				o.InstanceID, o.Priority = name, n
				runsAtOnce(t, ledger.Handle(), o, func(ctx context.Context, l workerlease.Lease) error {
					if l.Missed {
						late = append(late, since(l.Slot.Start))
					}
					return j.run(ctx, l)
				})
			}
			at(c.back + 20*time.Second)
			soon := j.ran()
			at(14*time.Minute + 50*time.Second)
			equal(t, "run", j.ran(), minutes(c.want...)...)
			if n := len(soon); n < len(c.want)-1 {
				t.Errorf("%v were run within 20 s, want all but the last of %v", soon, c.want)
			}
			for _, slot := range late {
				if slot == 14*time.Minute || slot == 5*time.Minute {
					t.Errorf("the slot of %v is said to be late", slot)
				}
			}
			if caught := len(c.want) - 2; c.back%time.Minute < 15*time.Second && len(late) != caught-1 {
				t.Errorf("%v are said to be late", late)
			}
		})
	}
}

func TestANightlyJobIsCaughtUpInTheAfternoonAndATypeThatWasNeverDoneIsNot(t *testing.T) {
	for _, done := range []bool{false, true} {
		bubble(t, fmt.Sprint(done), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			j := &job{each: time.Minute}
			o := named("a", 0)
			o.Schedule, o.Job = slots.Must(slots.Cron("0 2 * * *", "")), &workerlease.Job{CatchUp: workerlease.CatchUpNewest}
			if done {
				at(2*time.Hour + time.Minute)
				r := runsAtOnce(t, ledger.Handle(), o, j.run)
				at(3 * time.Hour)
				r.cancel()
			}
			at(38 * time.Hour) // 14:00 of the next day
			w := runsAtOnce(t, ledger.Handle(), o, j.run)
			at(39 * time.Hour)
			want := []time.Duration{}
			if done {
				want = []time.Duration{2 * time.Hour, 26 * time.Hour}
			}
			equal(t, "run", j.ran(), want...)
			if n := len(observed[event.Missed](w.worker)); n != 0 {
				t.Errorf("%d slots missed, want none: it was caught up, or none is known", n)
			}
			at(51 * time.Hour)
			equal(t, "run", j.ran(), append(want, 50*time.Hour)...)
		})
	}
}

// A worker that comes when the slot may not begin any more reads in the ledger that nobody has begun it.
func TestAWorkerThatComesTooLateSaysThatTheSlotWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{each: time.Minute}
		o := named("a", 0)
		o.Schedule, o.Job = slots.Must(slots.Cron("0 2 * * *", "")), &workerlease.Job{}
		at(2*time.Hour + time.Minute)
		r := runsAtOnce(t, ledger.Handle(), o, j.run)
		at(3 * time.Hour)
		if n := len(observed[event.Missed](r.worker)); n != 0 {
			t.Errorf("%d slots missed at first", n)
		}
		r.cancel()
		for i, came := range []time.Duration{38 * time.Hour, (50 + 3*24 + 12) * time.Hour} {
			at(came)
			w := runsAtOnce(t, ledger.Handle(), o, j.run)
			at(came + 20*time.Hour)
			missed := observed[event.Missed](w.worker)
			first, count := 26*time.Hour, 1
			if i > 0 {
				first, count = 74*time.Hour, 3
			}
			if len(missed) != 1 || missed[0].Why != workerlease.Unattended || since(missed[0].Slot.Start) != first || missed[0].Count != count {
				t.Errorf("observed %+v, want the %d from %v that nobody was there for", missed, count, first)
			}
			w.cancel()
		}
		equal(t, "run", j.ran(), 2*time.Hour, 50*time.Hour, 146*time.Hour)
	})
}

var eachMinute = slots.Must(slots.Every(time.Minute))

// The slot of 00:07 is begun late at 00:08, and takes until 00:11:11. The newest that is missed then is run, and each of those
// before it is said to be given up.
func TestSlotsThatALateRunKeepsBackAreRunOrSaidToBeMissed(t *testing.T) {
	for _, c := range []struct {
		how        workerlease.CatchUp
		within     time.Duration
		run        []int
		unattended []int // said to be missed, since nobody was there
		kept       []int // or since the run went on
	}{
		{workerlease.CatchUpNewest, 0, []int{5, 7, 10, 11, 12}, []int{6}, []int{8, 9}},
		{workerlease.CatchUpAll, 0, []int{5, 6, 7, 8, 9, 10, 11, 12}, nil, nil},
		{workerlease.CatchUpAll, 90 * time.Second, []int{5, 7, 10, 11, 12}, []int{6}, []int{8, 9}},
	} {
		bubble(t, fmt.Sprint(c.how, c.within), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			w := newWorking(map[time.Duration]time.Duration{7 * time.Minute: 190 * time.Second})
			if len(c.run) > 6 {
				w.takes = nil // Nothing is given up.
			}
			o := minutely("a", 0)
			o.Job.CatchUp, o.Job.CatchUpWithin = c.how, c.within
			at(5*time.Minute + time.Second)
			first := runsAtOnce(t, ledger.Handle(), o, w.run)
			at(5*time.Minute + 30*time.Second)
			first.cancel()
			at(8*time.Minute + time.Second)
			o.InstanceID = "b"
			b := runsAtOnce(t, ledger.Handle(), o, w.run)
			at(12*time.Minute + 30*time.Second)
			equal(t, "run", w.ran(), minutes(c.run...)...)
			said := map[workerlease.Reason][]time.Duration{}
			for _, e := range observed[event.Missed](b.worker) {
				for s := e.Slot; s.Start.Before(e.Until); s = eachMinute.Next(s.Start) {
					said[e.Why] = append(said[e.Why], since(s.Start))
				}
			}
			equal(t, "unattended", said[workerlease.Unattended], minutes(c.unattended...)...)
			equal(t, "kept back", said[workerlease.Overrunning], minutes(c.kept...)...)
		})
	}
}

// The holder's extension is sent in the lead, when all others have had their turns: its store has become slow.
func TestNobodyClaimsTheBoundaryOfARunWhoseExtensionIsLate(t *testing.T) {
	for _, by := range []priority.TieBreak{priority.Sticky, priority.Rotate, priority.Random} {
		bubble(t, fmt.Sprint(by), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			w := newWorking(map[time.Duration]time.Duration{time.Minute: 150 * time.Second})
			slow := &hooked{Ledger: ledger.Handle(), before: func() error {
				if now := time.Since(t0) % time.Minute; now > 50*time.Second && time.Since(t0) > time.Minute {
					time.Sleep(max(0, 54500*time.Millisecond-now))
				}
				return nil
			}}
			o := minutely("slow", 0)
			o.TieBreak = by
			a := runs(t, slow, o, w.run)
			o.Priority = 1
			for _, name := range []string{"b", "c"} {
				o.InstanceID = name
				runs(t, ledger.Handle(), o, w.run)
			}
			at(5 * time.Minute)
			equal(t, "the long one", w.of(time.Minute), "slow")
			if failed := observed[event.TaskFailed](a.worker); len(failed) > 0 {
				t.Errorf("the run was cut: %+v", failed)
			}
		})
	}
}

// A holder that is dead costs the next slot some milliseconds, and one that has finished nothing.
func TestTheSlotAfterARunThatIsOverBeginsAsEver(t *testing.T) {
	for _, died := range []bool{false, true} {
		bubble(t, fmt.Sprint(died), func(t *testing.T) {
			inner, link := cut(t)
			w := newWorking(map[time.Duration]time.Duration{time.Minute: 40 * time.Second})
			if died {
				w.takes[time.Minute] = time.Hour
			}
			runs(t, link, minutely("a", 0), w.run)
			for n, name := range []string{"b", "c"} {
				runs(t, inner.Handle(), minutely(name, n+1), w.run)
			}
			at(time.Minute + 51*time.Second)
			want := "a"
			if died {
				link.Break(faultstore.Down())
				want = "b"
			}
			at(2*time.Minute + 30*time.Second)
			equal(t, "the slot of 2 min", w.of(2*time.Minute), want)
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, call := range w.calls {
				if late := call.began - call.slot; call.slot == 2*time.Minute && (late > 2*time.Second || !died && late > 50*time.Millisecond) {
					t.Errorf("it begins %v late", late)
				}
			}
		})
	}
}
