package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// ran is a run of a job: by whom, when, and for which slot.
type ran struct {
	by        string
	at        time.Time
	slot      slots.Slot
	attempt   int
	triggered bool
}

// triggered is a fleet with one job, whose runs it notes.
type triggered struct {
	t      *testing.T
	ledger *memory.Ledger
	clock  clock.Clock                            // of the workers; may be nil
	job    func(ctx context.Context, r ran) error // what a run does; may be nil

	workers []*workerlease.WorkerLease

	mu   sync.Mutex
	runs []ran
}

// taking is a fleet whose runs that are asked for take so long.
func taking(t *testing.T, takes time.Duration) *triggered {
	return &triggered{t: t, ledger: memory.New(memory.Options{}), job: func(_ context.Context, r ran) error {
		if r.triggered {
			time.Sleep(takes)
		}
		return nil
	}}
}

func (f *triggered) start(names []string, every time.Duration, job workerlease.Job) (workers []*workerlease.WorkerLease) {
	n := len(f.workers)
	f.startOn(f.ledger, names, func(_ int, o *workerlease.Options) { o.LeaseInterval, o.Job = every, &job })
	return f.workers[n:]
}

// startOn starts workers of an hourly job on a ledger, with changed options.
func (f *triggered) startOn(l store.Ledger, names []string, change func(n int, o *workerlease.Options)) {
	for i, name := range names {
		o := workerlease.Options{WorkerType: "report", InstanceID: name, Priority: i, LeaseInterval: time.Hour, Job: &workerlease.Job{}}
		if change != nil {
			change(i, &o)
		}
		w, err := workerlease.NewClient(l, workerlease.ClientOptions{Clock: f.clock}).StartTask(f.t.Context(), o, func(ctx context.Context, l workerlease.Lease) error {
			r := ran{name, time.Now(), l.Slot, l.Attempt, l.Triggered}
			f.mu.Lock()
			f.runs = append(f.runs, r)
			f.mu.Unlock()
			if f.job == nil {
				return nil
			}
			return f.job(ctx, r)
		})
		must(f.t, err)
		f.workers = append(f.workers, w)
	}
}

// all are the runs that were asked for, and those of slots.
func (f *triggered) all() (asked, slotted []ran) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.runs {
		if r.triggered {
			asked = append(asked, r)
		} else {
			slotted = append(slotted, r)
		}
	}
	return asked, slotted
}

func (f *triggered) trigger(within time.Duration) store.Record {
	f.t.Helper()
	return give(f.t, f.ledger, operate.Order{WorkerType: "report", Kind: store.OrderTrigger, For: within, InstanceID: "anna", Reason: "month end"})
}

// said is how many records say that a run has succeeded, of those that match.
func (f *triggered) said(match func(store.Outcome) bool) (n int) {
	f.t.Helper()
	records, _, err := f.ledger.Tail(f.t.Context(), "report", 1000)
	must(f.t, err)
	for _, r := range records {
		if o, told := r.Outcome(); told && o.Result == store.Succeeded && match(o) {
			n++
		}
	}
	return n
}

func (f *triggered) stop() { stopAll(f.workers) }

// stopAll stops all workers, and waits for them.
func stopAll(workers []*workerlease.WorkerLease) {
	for _, w := range workers {
		_ = w.StopLeasing(context.Background())
	}
}

func TestATriggerRunsTheJobOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &triggered{t: t, ledger: memory.New(memory.Options{})}
		workers := f.start([]string{"a", "b", "c"}, time.Hour, workerlease.Job{})
		defer stopAll(workers)
		time.Sleep(90 * time.Minute)
		begun := time.Now()
		f.trigger(0)
		time.Sleep(time.Second)
		asked, _ := f.all()
		if len(asked) != 1 || asked[0].by != "a" || asked[0].attempt != 1 {
			t.Fatalf("a second after a trigger the runs that were asked for are %v, want one, by the worker with the highest priority", asked)
		}
		time.Sleep(2 * time.Hour)
		asked, slotted := f.all()
		if len(asked) != 1 {
			t.Errorf("it ran %d times: %v", len(asked), asked)
		}
		seen := map[time.Time]bool{}
		for _, r := range slotted {
			if seen[r.slot.Start] {
				t.Errorf("slot %v was run twice", r.slot)
			}
			seen[r.slot.Start] = true
		}
		for at := begun.Truncate(time.Hour); at.Before(time.Now().Add(-time.Hour)); at = at.Add(time.Hour) {
			if !seen[at.UTC()] {
				t.Errorf("the slot of %v was not run: %v", at, slotted)
			}
		}
		orders(t, f.ledger, 0)
	})
}

// orders checks how many orders the head has.
func orders(t *testing.T, l *memory.Ledger, want int) {
	t.Helper()
	records, _, err := l.Tail(t.Context(), "report", 1)
	if err != nil || len(records) == 0 {
		t.Fatal(records, err)
	}
	if n := len(records[0].OrdersAt(time.Time{})); n != want {
		t.Errorf("the head has %d orders (%s), want %d", n, records[0].Orders, want)
	}
}

func TestATriggerWaitsForTheRunInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &triggered{t: t, ledger: memory.New(memory.Options{})}
		f.job = func(ctx context.Context, r ran) error {
			if !r.triggered {
				time.Sleep(10 * time.Minute)
			}
			return ctx.Err()
		}
		defer stopAll(f.start([]string{"a", "b"}, time.Hour, workerlease.Job{}))
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + 5*time.Minute)))
		f.trigger(0)
		time.Sleep(5*time.Minute - time.Millisecond)
		if asked, _ := f.all(); len(asked) > 0 {
			t.Fatalf("it ran beside the run in progress: %v", asked)
		}
		time.Sleep(2 * time.Second)
		if asked, _ := f.all(); len(asked) != 1 {
			t.Errorf("within 2 s of the end of the run in progress it ran %d times: %v", len(asked), asked)
		}
	})
}

// A run that was asked for right before a boundary, and that goes on into the slot, delays that slot, and takes nothing of it.
func TestASlotIsRunAfterTheTriggerThatGoesOnIntoIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taking(t, 35*time.Minute)
		defer stopAll(f.start([]string{"a", "b"}, time.Hour, workerlease.Job{}))
		boundary := time.Now().Truncate(time.Hour).Add(2 * time.Hour)
		time.Sleep(time.Until(boundary.Add(-5 * time.Minute)))
		f.trigger(0)
		time.Sleep(time.Until(boundary.Add(59 * time.Minute)))
		asked, slotted := f.all()
		last := slotted[len(slotted)-1]
		if len(asked) != 1 || !last.slot.Start.Equal(boundary) || last.at.Before(boundary.Add(30*time.Minute)) || last.at.After(boundary.Add(32*time.Minute)) {
			t.Errorf("asked for: %v; the last slot that was run: %v at %v, want that of %v after 30 min", asked, last.slot, last.at, boundary)
		}
	})
}

func TestATriggerIsTriedAgainLikeAnySlot(t *testing.T) {
	for _, c := range []struct {
		fails, most, want int
	}{{2, 0, 3}, {9, 3, 3}, {9, 1, 1}} {
		bubble(t, fmt.Sprintf("fails %d times, %d attempts", c.fails, c.most), func(t *testing.T) {
			f := &triggered{t: t, ledger: memory.New(memory.Options{})}
			n := 0
			f.job = func(_ context.Context, r ran) error {
				if r.triggered {
					if n++; n <= c.fails {
						return errors.New("no")
					}
				}
				return nil
			}
			defer stopAll(f.start([]string{"a", "b"}, time.Hour, workerlease.Job{MaxAttempts: c.most}))
			time.Sleep(70 * time.Minute)
			f.trigger(10 * time.Minute)
			time.Sleep(15 * time.Minute)
			if asked, _ := f.all(); len(asked) != c.want || asked[len(asked)-1].attempt != c.want {
				t.Errorf("tried %v, want %d attempts", asked, c.want)
			}
			orders(t, f.ledger, 0)
		})
	}
}

func TestTriggersAddUpAndOutliveAPauseAndARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &triggered{t: t, ledger: memory.New(memory.Options{})}
		workers := f.start([]string{"a", "b"}, time.Hour, workerlease.Job{})
		time.Sleep(70 * time.Minute)
		desk := operate.On(f.ledger)
		if _, err := desk.Give(t.Context(), operate.Order{WorkerType: "report", Kind: store.OrderPause, For: 5 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			f.trigger(0)
		}
		time.Sleep(4 * time.Minute)
		if asked, _ := f.all(); len(asked) > 0 {
			t.Fatalf("ran in a pause: %v", asked)
		}
		stopAll(workers)
		time.Sleep(2 * time.Minute)
		defer stopAll(f.start([]string{"c", "d"}, time.Hour, workerlease.Job{}))
		time.Sleep(time.Minute)
		if asked, _ := f.all(); len(asked) != 3 {
			t.Errorf("after a pause and a restart, 3 triggers ran %d times: %v", len(asked), asked)
		}
	})
}

// Who stops while it runs for a trigger waits for the run, and leaves it to others.
func TestWhoStopsInATriggersRunLeavesItToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &triggered{t: t, ledger: memory.New(memory.Options{})}
		running := 0
		f.job = func(ctx context.Context, r ran) error {
			if r.triggered && r.by == "a" {
				f.mu.Lock()
				running++
				f.mu.Unlock()
				<-ctx.Done()
				time.Sleep(time.Second)
				f.mu.Lock()
				running--
				f.mu.Unlock()
				return ctx.Err()
			}
			return nil
		}
		workers := f.start([]string{"a", "b"}, time.Hour, workerlease.Job{})
		time.Sleep(70 * time.Minute)
		f.trigger(0)
		time.Sleep(10 * time.Second)
		if !workers[0].IsHolder() {
			t.Error("the worker that runs for a trigger isn't the holder")
		}
		if h, ok := workers[0].Holder(); !ok || h.InstanceID != "a" {
			t.Errorf("its holder is %+v, %v", h, ok)
		}
		if err := workers[0].StopLeasing(t.Context()); err != nil || running != 0 {
			t.Errorf("stopping in a run: %v, %d run on", err, running)
		}
		time.Sleep(10 * time.Second)
		asked, _ := f.all()
		if len(asked) != 2 || asked[1].by != "b" {
			t.Errorf("runs %v, want one more by b", asked)
		}
		stopAll(workers)
	})
}

// A nightly job that was deployed at noon has had no slot yet.
func TestAJobRunsForATriggerBeforeItsFirstSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &triggered{t: t, ledger: memory.New(memory.Options{})}
		time.Sleep(12 * time.Hour)
		defer stopAll(f.start([]string{"a", "b"}, 24*time.Hour, workerlease.Job{}))
		time.Sleep(time.Minute)
		f.trigger(0)
		time.Sleep(2 * time.Second)
		if asked, slotted := f.all(); len(asked) != 1 || len(slotted) != 0 {
			t.Fatalf("asked for: %v, of slots: %v, want one run that was asked for", asked, slotted)
		}
		time.Sleep(12 * time.Hour)
		if asked, slotted := f.all(); len(asked) != 1 || len(slotted) != 1 {
			t.Errorf("after midnight, asked for: %v, of slots: %v, want one of each", asked, slotted)
		}
	})
}
