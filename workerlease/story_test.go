package workerlease_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// story is a job of a minute, to whose workers something happens.
type story struct {
	t       *testing.T
	inner   *memory.Ledger
	link    *faultstore.Ledger // of the first worker
	j       job
	o       workerlease.Options
	takes   map[time.Duration]time.Duration // by the slot's start, or of a trigger's run: 0; else a second
	fails   time.Duration                   // the slot that does
	unfit   atomic.Int32                    // so many of the workers are
	workers []*worker
}

func (s *story) starts() *worker {
	o, job := s.o, *s.o.Job
	i := len(s.workers)
	o.InstanceID, o.Job = fmt.Sprint("w", i), &job
	o.Eligible = func(context.Context) error {
		if i < int(s.unfit.Load()) {
			return errWork
		}
		return nil
	}
	ledger := store.Ledger(s.inner.Handle())
	if i == 0 {
		ledger = s.link
	}
	w := start(s.t, setup{asGiven: true, ledger: ledger, Options: o, task: s.j.run})
	s.workers = append(s.workers, w)
	return w
}

// away cuts the first worker off.
func (s *story) away(from, to time.Duration) {
	at(from)
	s.link.Break(faultstore.Down())
	at(to)
	s.link.Mend()
}

func (s *story) trigger(t time.Duration) {
	at(t)
	_, err := operate.On(s.inner.Handle()).Give(s.t.Context(), operate.Order{WorkerType: "job", Kind: store.OrderTrigger, For: time.Minute, InstanceID: "ann"})
	must(s.t, err)
}

func (s *story) work(ctx context.Context, l workerlease.Lease, _ int) error {
	slot := since(l.Slot.Start)
	takes := s.takes[slot]
	if l.Triggered {
		takes = s.takes[0]
	}
	if slot == s.fails && !l.Triggered {
		return errWork
	}
	return waits(ctx, max(takes, time.Second))
}

// told is what the workers say of a slot that was not begun.
func (s *story) told(slot time.Duration) (all []string) {
	for _, w := range s.workers {
		for _, e := range observed[event.Missed](w) {
			if slot >= since(e.Slot.Start) && slot < since(e.Until) {
				all = append(all, string(e.Why))
			}
		}
		for _, e := range observed[event.Skipped](w) {
			if slot == since(e.Slot.Start) {
				all = append(all, "skipped")
			}
		}
	}
	return all
}

// Each slot up to the last one is begun, or told once, with its reason.
func TestWhatBecomesOfEachSlotIsToldOnce(t *testing.T) {
	const sec = time.Second
	m := time.Minute
	for name, c := range map[string]struct {
		job     workerlease.Job
		takes   map[time.Duration]time.Duration
		fails   time.Duration
		happens func(s *story)
		want    map[time.Duration]string // by slot: "" is begun
	}{
		"two outages": {happens: func(s *story) {
			s.away(2*m+30*sec, 4*m+20*sec)
			s.away(4*m+26*sec, 7*m+5*sec)
		}, want: map[time.Duration]string{3 * m: "store unreachable", 4 * m: "store unreachable", 5 * m: "store unreachable", 6 * m: "store unreachable"}},
		"an outage, and slots that are run late": {job: workerlease.Job{CatchUp: workerlease.CatchUpNewest}, happens: func(s *story) {
			s.away(2*m+30*sec, 5*m+40*sec)
		}, want: map[time.Duration]string{3 * m: "store unreachable", 4 * m: "store unreachable"}},
		"unfit, and then an outage": {happens: func(s *story) {
			at(2*m + 20*sec)
			s.unfit.Store(1)
			at(3*m + 30*sec)
			s.unfit.Store(0)
			s.away(3*m+40*sec, 6*m+40*sec)
		}, want: map[time.Duration]string{3 * m: "ineligible", 4 * m: "store unreachable", 5 * m: "store unreachable", 6 * m: "store unreachable"}},
		"a long run, and then an outage": {takes: map[time.Duration]time.Duration{2 * m: time.Hour}, happens: func(s *story) {
			s.away(3*m+30*sec, 6*m+40*sec)
		}, want: map[time.Duration]string{3 * m: "skipped", 4 * m: "store unreachable", 5 * m: "store unreachable", 6 * m: "store unreachable"}},
		"an outage, and a pause that was given in it": {happens: func(s *story) {
			at(2*m + 30*sec)
			s.link.Break(faultstore.Down())
			at(4*m + 30*sec)
			pause(s.t, s.inner.Handle(), 7*m+30*sec, false)
			at(6*m + 40*sec)
			s.link.Mend()
		}, want: map[time.Duration]string{3 * m: "store unreachable", 4 * m: "store unreachable", 5 * m: "store unreachable", 6 * m: "store unreachable", 7 * m: "paused"}},
		"both unfit, and then one of them": {happens: func(s *story) {
			s.starts()
			at(2*m + 30*sec)
			s.unfit.Store(2)
			at(3*m + 3*sec)
			s.unfit.Store(1)
		}, want: map[time.Duration]string{}},
		"a run that a pause cuts, and a worker that starts": {takes: map[time.Duration]time.Duration{3 * m: time.Hour}, happens: func(s *story) {
			at(3*m + 2*sec)
			pause(s.t, s.inner.Handle(), 4*m+30*sec, true)
			at(3*m + 13*sec)
			s.workers[0].stop(s.t)
			s.starts()
		}, want: map[time.Duration]string{4 * m: "paused"}},
		"a worker that starts amid a trigger's run": {takes: map[time.Duration]time.Duration{0: time.Minute}, happens: func(s *story) {
			s.trigger(2*m + 40*sec)
			at(3*m + 17*sec)
			s.starts()
		}, want: map[time.Duration]string{}},
		"a worker that takes over from a trigger's run": {takes: map[time.Duration]time.Duration{0: time.Hour}, happens: func(s *story) {
			s.trigger(2*m + 27*sec)
			at(3*m + 17*sec)
			s.workers[0].stop(s.t)
			s.takes[0] = time.Second
			s.starts()
		}, want: map[time.Duration]string{}},
		"a slot that failed before a trigger's run": {job: workerlease.Job{MaxAttempts: 1}, fails: 3 * m, takes: map[time.Duration]time.Duration{0: 25 * sec}, happens: func(s *story) {
			s.trigger(3*m + 10*sec)
			at(3*m + 20*sec)
			s.starts()
		}, want: map[time.Duration]string{}},
		"a run that is late for a trigger's, and long": {takes: map[time.Duration]time.Duration{0: 40 * sec, 3 * m: 110 * sec}, happens: func(s *story) {
			s.trigger(2*m + 40*sec)
		}, want: map[time.Duration]string{4 * m: "skipped"}},
	} {
		bubble(t, name, func(t *testing.T) {
			s := &story{t: t, takes: c.takes, fails: c.fails, o: minutely("", 0)}
			s.inner, s.link = cut(t)
			s.j.do, s.o.Job = s.work, &c.job
			s.starts()
			c.happens(s)
			at(9*m + 30*sec)
			if lost := observed[event.Lost](s.workers[0]); len(s.workers) == 1 && len(lost) > 0 {
				t.Errorf("the only worker says that it has lost %+v", lost)
			}
			ran := s.j.ran()
			for slot := m; slot < 9*m; slot += m {
				told, want := s.told(slot), c.want[slot]
				if begun := slices.Contains(ran, slot); begun != (want == "") || !begun && !slices.Equal(told, []string{want}) || begun && len(told) > 0 {
					t.Errorf("the slot of %v: begun: %v, told: %q, want %q", slot, begun, told, want)
				}
			}
		})
	}
}
