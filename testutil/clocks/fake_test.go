package clocks_test

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// uncertainty is more than what a worker lets pass to be sure that its slot has
// begun.
const uncertainty = 20 * time.Millisecond

// alsoInABubble runs a test inside a bubble, too, unless it is there already.
func alsoInABubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	const name = "in a bubble"
	if !strings.HasSuffix(t.Name(), strings.ReplaceAll(name, " ", "_")) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}

func TestLeasesHaveSettledWhenAdvanceReturns(t *testing.T) {
	alsoInABubble(t, TestLeasesHaveSettledWhenAdvanceReturns)
	f := clocks.NewFake(t0)
	d, e := &diary{now: f.Now}, &diary{now: f.Now}
	ledger := memory.New(memory.Options{Clock: f})
	c := f.NewClient(ledger, workerlease.ClientOptions{})
	start(t, c, workerlease.Options{}, d.blocking())
	start(t, c, workerlease.Options{WorkerType: "other", LeaseInterval: 7 * time.Minute}, e.starting())
	f.Advance(t, 4*time.Minute)
	d.check(t)
	e.check(t, "allocated 3:00") // slots of 7 min count from a Monday in 1970
	f.Advance(t, time.Minute+uncertainty)
	d.check(t, "allocated 5:00")
	f.Advance(t, 4*time.Minute)
	d.check(t)
	f.AdvanceTo(t, t0.Add(15*time.Minute+uncertainty))
	d.check(t, "cancelled 10:00", "expired 10:00", "allocated 10:00", "cancelled 15:00", "expired 15:00", "allocated 15:00")
	e.check(t, "expired 10:00", "allocated 10:00")
}

func TestSeveralWorkersSettleAtTheSameMoment(t *testing.T) {
	alsoInABubble(t, TestSeveralWorkersSettleAtTheSameMoment)
	f := clocks.NewFake(t0)
	ledger := memory.New(memory.Options{Clock: f})
	d := &diary{now: f.Now}
	var workers []*workerlease.WorkerLease
	for i, name := range []string{"a", "b", "c"} {
		workers = append(workers, start(t, f.NewClient(ledger, workerlease.ClientOptions{}),
			workerlease.Options{InstanceID: name, Priority: i}, d.starting()))
	}
	f.Advance(t, 6*time.Minute)
	if err := workers[0].StopLeasing(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Advance(t, 5*time.Minute)
	if got, want := holders(t, ledger), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("holders = %q, want %q", got, want)
	}
	d.check(t, "allocated 5:00", "expired 6:00", "allocated 10:00")
}

func TestTheTestsOwnTimersFireInOrder(t *testing.T) {
	alsoInABubble(t, timersFireInOrder)
	suites.RealTime(t)
	timersFireInOrder(t)
}

func timersFireInOrder(t *testing.T) {
	f := clocks.NewFake(t0)
	d := &diary{now: f.Now}
	stopped := f.AfterFunc(10*time.Second, func() { d.write("stopped") })
	reset := f.AfterFunc(10*time.Second, func() { d.write("reset") })
	f.AfterFunc(20*time.Second, func() { d.write("func") })
	stopped.Stop()
	reset.Reset(25 * time.Second)
	go func() {
		f.Sleep(15 * time.Second)
		d.write("slept")
		<-f.After(15 * time.Second)
		d.write("after")
		ctx, cancel := f.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		<-ctx.Done()
		d.write(ctx.Err().Error())
	}()
	f.Advance(t, time.Hour)
	d.check(t, "slept 0:15", "func 0:20", "reset 0:25", "after 0:30", "context deadline exceeded 0:45")
}

// compute keeps a processor busy for some milliseconds.
func compute() {
	data := make([]byte, 1<<20)
	for range 10 {
		sum := sha256.Sum256(data)
		copy(data, sum[:])
	}
}

func TestNoTickIsLost(t *testing.T) {
	alsoInABubble(t, noTickIsLost)
	suites.RealTime(t)
	noTickIsLost(t)
}

func noTickIsLost(t *testing.T) {
	f := clocks.NewFake(t0)
	ledger := memory.New(memory.Options{Clock: f})
	var ticks atomic.Int32
	start(t, f.NewClient(ledger, workerlease.ClientOptions{}), workerlease.Options{LeaseInterval: 10 * time.Second},
		workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) {
			go func() {
				ticker := f.Ticker(time.Second)
				defer ticker.Stop()
				for {
					select {
					case <-ticker.C:
						compute()
						ticks.Add(1)
					case <-ctx.Done():
						return
					}
				}
			}()
		}})
	f.Advance(t, 10*time.Second)
	for i := range int32(9) {
		f.Advance(t, time.Second)
		// It was allocated a bit after the boundary, and so is each tick.
		if got, want := ticks.Load(), i; got != want {
			t.Fatalf("%d s into the slot, %d ticks, want %d", i+1, got, want)
		}
	}
}

func TestTheClockStandsStillWhileALedgerWorks(t *testing.T) {
	alsoInABubble(t, TestTheClockStandsStillWhileALedgerWorks)
	f := clocks.NewFake(t0)
	d := &diary{now: f.Now}
	// It takes some real time, as one on a disk does.
	ledger := faultstore.New(memory.New(memory.Options{Clock: f}), faultstore.Options{
		Plan: func(faultstore.Call) faultstore.Fault { return faultstore.Fault{Before: 5 * time.Millisecond} },
	})
	for _, name := range []string{"a", "b"} {
		start(t, f.NewClient(ledger, workerlease.ClientOptions{}), workerlease.Options{InstanceID: name}, d.starting())
	}
	f.Advance(t, 14*time.Minute)
	d.check(t, "allocated 5:00", "expired 10:00", "allocated 10:00")
}

func TestAnUnhurriedCallbackIsWaitedFor(t *testing.T) {
	f := clocks.NewFake(t0)
	var steps atomic.Int32
	work := func() {
		for range 20 {
			time.Sleep(time.Millisecond) // stands for I/O
			steps.Add(1)
		}
	}
	start(t, f.NewClient(memory.New(memory.Options{Clock: f}), workerlease.ClientOptions{}), workerlease.Options{},
		workerlease.Callbacks{
			LeaseAllocated: func(context.Context, workerlease.Lease) { work() },
			LeaseExpired:   func(workerlease.Lease, workerlease.Reason) { work() },
		})
	for _, want := range []int32{20, 60} {
		f.Advance(t, 5*time.Minute+uncertainty)
		if got := steps.Load(); got != want {
			t.Errorf("after %v, %d steps, want %d", f.Since(t0), got, want)
		}
	}
}

func TestAWatchedClientMayHaveItsOwnClock(t *testing.T) {
	alsoInABubble(t, TestAWatchedClientMayHaveItsOwnClock)
	f := clocks.NewFake(t0)
	d := &diary{now: f.Now}
	ledger := memory.New(memory.Options{Clock: f})
	c := workerlease.NewClient(ledger, workerlease.ClientOptions{Clock: clocks.Skewed(f, -time.Hour)})
	f.Watch(c)
	start(t, c, workerlease.Options{InstanceID: "skewed", Priority: 1}, d.blocking())
	c = f.NewClient(ledger, workerlease.ClientOptions{Clock: clocks.Drifting(f, -500)})
	w := start(t, c, workerlease.Options{InstanceID: "slow"}, d.blocking())
	f.Advance(t, 6*time.Minute)
	d.check(t, "allocated 5:00")
	if err := w.StopLeasing(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Advance(t, 5*time.Minute)
	d.check(t, "cancelled 6:00", "expired 6:00", "allocated 10:00")
	if got, want := holders(t, ledger), []string{"slow", "skewed"}; !slices.Equal(got, want) {
		t.Errorf("holders = %q, want %q", got, want)
	}
}

// In a bubble, the minute of patience takes no time.
func TestACallbackThatHangsFailsTheTestAndIsNamed(t *testing.T) {
	for _, hang := range []string{"LeaseAllocated", "LeaseExpired"} {
		t.Run(hang, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := clocks.NewFake(t0)
				release := make(chan struct{})
				defer close(release)
				wait := func(name string) {
					if name == hang {
						<-release
					}
				}
				start(t, f.NewClient(memory.New(memory.Options{Clock: f}), workerlease.ClientOptions{}),
					workerlease.Options{WorkerType: "invoice-export", InstanceID: "w1"},
					workerlease.Callbacks{
						LeaseAllocated: func(context.Context, workerlease.Lease) { wait("LeaseAllocated") },
						LeaseExpired:   func(workerlease.Lease, workerlease.Reason) { wait("LeaseExpired") },
					})
				got := failure(func(t clocks.T) { f.Advance(t, 15*time.Minute) })
				for _, want := range []string{"1m0s of real time", "invoice-export (w1)", hang, "fake_test.go:"} {
					if !strings.Contains(got, want) {
						t.Errorf("Advance failed with %q, want it to contain %q", got, want)
					}
				}
			})
		})
	}
}

func TestAdvanceRefusesWhatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := clocks.NewFake(t0)
		if got := failure(func(t clocks.T) { f.Advance(t, -1) }); !strings.Contains(got, "can't go back") {
			t.Errorf("Advance(-1) failed with %q, want: can't go back", got)
		}

		c := f.NewClient(memory.New(memory.Options{Clock: f}), workerlease.ClientOptions{})
		nested := ""
		start(t, c, workerlease.Options{}, workerlease.Callbacks{
			LeaseAllocated: func(context.Context, workerlease.Lease) {
				nested = failure(func(t clocks.T) { f.Advance(t, time.Second) })
			},
		})
		f.Advance(t, 6*time.Minute)
		if !strings.Contains(nested, "moved already") {
			t.Errorf("Advance in a callback failed with %q, want: moved already", nested)
		}
	})
}

func TestAdvanceByNothingSettles(t *testing.T) {
	alsoInABubble(t, advanceByNothingSettles)
	suites.RealTime(t)
	advanceByNothingSettles(t)
}

func advanceByNothingSettles(t *testing.T) {
	f := clocks.NewFake(t0)
	var fired atomic.Bool
	f.AfterFunc(0, func() { fired.Store(true) })
	w := start(t, f.NewClient(memory.New(memory.Options{Clock: f}), workerlease.ClientOptions{}), workerlease.Options{}, (&diary{now: f.Now}).starting())
	f.Advance(t, 0)
	if !fired.Load() || !f.Now().Equal(t0) {
		t.Errorf("timer fired: %v, Now() = %v; want true, %v", fired.Load(), f.Now(), t0)
	}
	if got := w.Status().Contending.Start; !got.Equal(t0.Add(5 * time.Minute)) {
		t.Errorf("the worker contends for the slot of %v, want that of %v", got, t0.Add(5*time.Minute))
	}
}

func TestANewFakeShowsItsStart(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ start, want time.Time }{
		{time.Time{}, t0},
		{t0.In(berlin), t0.In(berlin)},
		{time.Date(1960, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(1960, 1, 1, 0, 0, 0, 1, time.UTC)},
	} {
		if got := clocks.NewFake(c.start).Now(); got != c.want {
			t.Errorf("NewFake(%v).Now() = %v, want %v", c.start, got, c.want)
		}
	}
}

var _ clock.Clock = (*clocks.Fake)(nil)
