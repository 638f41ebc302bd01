package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// job is a task that writes down how it is called by several workers.
type job struct {
	mu    sync.Mutex
	calls []call
	do    func(ctx context.Context, l workerlease.Lease, attempt int) error
	// Without do, each call is done when it has taken that long, and that for the slot of
	// 10 min when it has taken ten.
	each, ten time.Duration
}

type call struct {
	slot, began, ended time.Duration
	who                string
	err                error
}

func (j *job) run(ctx context.Context, l workerlease.Lease) error {
	j.mu.Lock()
	attempt := 1
	for _, c := range j.calls {
		if c.slot == since(l.Slot.Start) {
			attempt++
		}
	}
	i := len(j.calls)
	j.calls = append(j.calls, call{slot: since(l.Slot.Start), began: time.Since(t0), who: l.InstanceID})
	j.mu.Unlock()
	err := j.work(ctx, l, attempt)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls[i].ended, j.calls[i].err = time.Since(t0), err
	return err
}

func (j *job) work(ctx context.Context, l workerlease.Lease, attempt int) error {
	if j.do != nil {
		return j.do(ctx, l, attempt)
	}
	if j.ten > 0 && since(l.Slot.Start) == 10*time.Minute {
		time.Sleep(j.ten)
	} else {
		time.Sleep(j.each)
	}
	return nil
}

// once checks that a slot was run once.
func (j *job) once(t *testing.T, slot time.Duration) {
	t.Helper()
	if who := j.of(slot); len(who) != 1 {
		t.Errorf("the slot of %v was run by %v, want once", slot, who)
	}
}

// of are the workers that were called for a slot, in order.
func (j *job) of(slot time.Duration) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for _, c := range j.calls {
		if c.slot == slot {
			out = append(out, c.who)
		}
	}
	return out
}

// running is a worker in Run.
type running struct {
	*worker
	cancel context.CancelFunc
	ended  chan error
}

// runs runs a worker until the test, or cancel, ends it; Run must return nil then. Its client has the default clock,
// which in a bubble is the bubble's: by any other, leases would end as soon as they begin.
func runs(t *testing.T, ledger store.Ledger, o workerlease.Options, task workerlease.Task) *running {
	t.Helper()
	o.WaitForBoundary = true
	return runsAtOnce(t, ledger, o, task)
}

// runsAtOnce is the same for a worker that joins the slot in which it starts, if its options let it.
func runsAtOnce(t *testing.T, ledger store.Ledger, o workerlease.Options, task workerlease.Task) *running {
	t.Helper()
	r := &running{worker: &worker{}, ended: make(chan error, 1)}
	if o.WorkerType == "" {
		o.WorkerType = "job"
	}
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: r.worker})
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() { r.ended <- client.Run(ctx, o, task) }()
	t.Cleanup(func() {
		cancel()
		if err := <-r.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		r.ended <- nil
	})
	return r
}

// perSlot are the options of a job that is run once per slot.
func perSlot(name string, priority int) workerlease.Options {
	o := named(name, priority)
	o.Job, o.FailoverWithin = &workerlease.Job{}, 20*time.Second
	return o
}

var errWork = errors.New("no paper")

func TestATaskIsDoneOncePerSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{each: 70 * time.Second}
		a := runs(t, ledger.Handle(), perSlot("a", 0), j.run)
		b := runs(t, ledger.Handle(), perSlot("b", 1), j.run)
		c := runs(t, ledger.Handle(), perSlot("c", 1), j.run)
		at(19 * time.Minute)
		for _, slot := range minutes(5, 10, 15) {
			equal(t, fmt.Sprint("slot ", slot), j.of(slot), "a")
		}
		a.cancel()
		at(36 * time.Minute)
		for _, slot := range minutes(20, 25, 30) {
			if who := j.of(slot); len(who) != 1 || who[0] == "a" {
				t.Errorf("slot %v: %v, want one of the others, once", slot, who)
			}
		}
		if n := len(observed[event.SlotDone](a.worker)); n != 3 {
			t.Errorf("a observed %d slots that are done, want 3", n)
		}
		if n := len(observed[event.Missed](b.worker)) + len(observed[event.Missed](c.worker)); n != 0 {
			t.Errorf("%d slots missed", n)
		}
		done := time.Time{}
		for _, r := range records(t, ledger) {
			if r.DoneUntil.Before(done) {
				t.Errorf("seq %d: done until %v, after %v", r.Seq, r.DoneUntil, done)
			}
			done = r.DoneUntil
			if r.Kind == store.KindDone && !r.WindowStart.Equal(r.WindowEnd) {
				t.Errorf("seq %d grants %v to %v", r.Seq, r.WindowStart, r.WindowEnd)
			}
		}
	})
}

func TestAFailedTaskIsTriedByOthersUpToMaxAttempts(t *testing.T) {
	for _, most := range []int{0, 1, 3} {
		bubble(t, fmt.Sprint(most), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			j := &job{do: func(_ context.Context, _ workerlease.Lease, attempt int) error {
				time.Sleep(time.Second)
				if attempt == 2 {
					panic("jam")
				}
				return errWork
			}}
			var all []*running
			for i, name := range []string{"a", "b", "c"} {
				o := perSlot(name, i)
				o.Job.MaxAttempts = most
				all = append(all, runs(t, ledger.Handle(), o, j.run))
			}
			at(10 * time.Minute)
			who := j.of(5 * time.Minute)
			if most > 0 && len(who) != most || most == 0 && len(who) < 8 {
				t.Fatalf("tried by %v, want %d times", who, most)
			}
			if most != 1 && (who[0] != "a" || who[1] != "b") {
				t.Errorf("tried by %v, want a first, then the next priority", who)
			}
			exhausted := 0
			for _, r := range all {
				exhausted += len(observed[event.Exhausted](r.worker))
			}
			if (most > 0) != (exhausted > 0) {
				t.Errorf("%d workers observed that it was tried often enough", exhausted)
			}
			if n := len(observed[event.TaskFailed](all[0].worker)); n == 0 {
				t.Error("the observer did not get the error")
			}
			if most != 1 && len(observed[event.Panic](all[1].worker)) == 0 {
				t.Error("the observer did not get the panic")
			}
		})
	}
}

func TestATaskWhoseWorkerDiesIsRunByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, link := cut(t)
		j := &job{do: func(ctx context.Context, l workerlease.Lease, attempt int) error {
			if attempt == 1 && since(l.Slot.Start) == 5*time.Minute {
				<-ctx.Done() // It hangs.
				return context.Cause(ctx)
			}
			time.Sleep(10 * time.Second)
			return nil
		}}
		a := runs(t, link, perSlot("a", 0), j.run)
		runs(t, inner.Handle(), perSlot("b", 1), j.run)
		at(6 * time.Minute)
		link.Break(faultstore.Down())
		at(9 * time.Minute)
		link.Mend()
		at(14 * time.Minute)
		equal(t, "the slot", j.of(5*time.Minute), "a", "b")
		equal(t, "the next", j.of(10*time.Minute), "a")
		j.mu.Lock()
		if began := j.calls[1].began; began > 6*time.Minute+22*time.Second {
			t.Errorf("taken over at %v, want within 22 s", began)
		}
		j.mu.Unlock()
		if failed := observed[event.TaskFailed](a.worker); len(failed) != 1 || failed[0].Cause != store.LeaseLost || failed[0].GivenUp {
			t.Errorf("observed %+v, want an attempt that failed because its lease was lost", failed)
		}
	})
}

func TestRunEndsWithItsContextWhenTheTaskHasReturned(t *testing.T) {
	for _, o := range []workerlease.Options{parted("a", 0, 20*time.Second), perSlot("a", 0)} {
		synctest.Test(t, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			r := runs(t, ledger, o, func(ctx context.Context, _ workerlease.Lease) error {
				<-ctx.Done()
				time.Sleep(3 * time.Minute) // as long as it likes
				return nil
			})
			at(6 * time.Minute)
			r.cancel()
			at(9*time.Minute - time.Second)
			if len(r.ended) > 0 {
				t.Errorf("Run has returned at %v, want it to wait for the task", time.Since(t0))
			}
			at(9*time.Minute + time.Second)
			if len(r.ended) == 0 {
				t.Error("Run has not returned")
			}
			all := records(t, ledger)
			if o.Job != nil && !slices.ContainsFunc(all, func(r store.Record) bool { return r.Kind == store.KindDone }) {
				t.Errorf("records: %v, want that the slot is done", all)
			}
		})
	}
}

// The other tests of options show what else is refused.
func TestRunRefusesToRunNothingOrNowhere(t *testing.T) {
	o := workerlease.Options{WorkerType: "job"}
	for name, err := range map[string]error{
		"no task":   workerlease.Run(t.Context(), memory.New(memory.Options{}), o, nil),
		"no ledger": workerlease.Run(t.Context(), nil, o, func(context.Context, workerlease.Lease) error { return nil }),
	} {
		if !errors.Is(err, workerlease.ErrOptions) {
			t.Errorf("%s: %v, want ErrOptions", name, err)
		}
	}
}

// As by an application that closes the pool which it gave. Trying on would never end.
func TestRunEndsWithItsLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		runs := map[string]<-chan error{}
		for priority, name := range []string{"holds", "waits"} {
			ended := make(chan error, 1)
			runs[name] = ended
			client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: &worker{}})
			go func() {
				ended <- client.Run(t.Context(), named(name, priority), func(ctx context.Context, _ workerlease.Lease) error {
					<-ctx.Done()
					return nil
				})
			}()
		}
		at(12 * time.Minute)
		must(t, ledger.Close(t.Context()))
		at(time.Hour)
		for name, ended := range runs {
			select {
			case err := <-ended:
				if !errors.Is(err, store.ErrClosed) || errors.Is(err, workerlease.ErrNotReleased) {
					t.Errorf("Run() of the one that %s = %v, want that the ledger is closed", name, err)
				}
			default:
				t.Errorf("Run() of the one that %s goes on without a ledger", name)
			}
		}
	})
}
