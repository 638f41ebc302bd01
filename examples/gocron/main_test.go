package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// unlocking is a Locker as they usually are: it is held while the job runs.
type unlocking struct{ *Locker }

func (u unlocking) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	o := u.Options
	o.WorkerType = workerType(key)
	claim, err := u.Client.TryClaim(ctx, o)
	return released{claim}, err
}

type released struct{ claim *workerlease.Claim }

func (r released) Unlock(context.Context) error { return r.claim.Release(context.Background()) }

func TestSchedulersWhoseClocksAreApartRunAJobOnce(t *testing.T) {
	for name, test := range map[string]struct {
		locker func(*Locker) gocron.Locker
		want   int // in each 5 minutes
	}{
		"the slot is kept":                   {func(l *Locker) gocron.Locker { return l }, 1},
		"it is released when the job is run": {func(l *Locker) gocron.Locker { return unlocking{l} }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ledger := memory.New(memory.Options{})
				runs := make(chan time.Time, 100)
				var schedulers []gocron.Scheduler
				time.Sleep(3 * time.Minute) // It is never midnight for any of them.
				for node, ahead := range map[string]time.Duration{"slow": -40 * time.Second, "right": 0, "fast": time.Minute} {
					locker := test.locker(&Locker{Client: newClient(ledger), Options: workerlease.Options{
						InstanceID: node, Schedule: slots.Must(slots.Cron("2-57/5 * * * *", "UTC")),
					}})
					schedulers = append(schedulers, schedule(t, ahead, gocron.WithDistributedLocker(locker), func() {
						runs <- time.Now()
						time.Sleep(time.Second)
					}))
				}
				time.Sleep(20 * time.Minute)
				for _, s := range schedulers {
					if err := s.Shutdown(); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(5 * time.Minute) // to the end of the slot that is kept
				close(runs)
				perSlot := map[time.Time]int{}
				for at := range runs {
					perSlot[at.Round(5*time.Minute)]++
				}
				if len(perSlot) != 4 {
					t.Errorf("run at %v, want at 4 times", perSlot)
				}
				for due, n := range perSlot {
					if n != test.want {
						t.Errorf("due at %v: %d runs, want %d", due.Format(time.TimeOnly), n, test.want)
					}
				}
			})
		})
	}
}

func TestALockerRefusesWhatWouldFreeItsSlotOrKeepItForEver(t *testing.T) {
	ledger := memory.New(memory.Options{})
	for name, o := range map[string]workerlease.Options{
		"FailoverWithin is 1m0s": {FailoverWithin: time.Minute}, "Job true": {Job: &workerlease.Job{}}, "Continuous true": {Continuous: true},
	} {
		l := &Locker{Client: newClient(ledger), Options: o}
		lock, err := l.Lock(t.Context(), "report")
		if lock != nil || err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "leave them out") {
			t.Errorf("Lock = %v, %v, want an error with %q", lock, err, name)
		}
	}
	if r, _, err := ledger.Tail(t.Context(), workerType("report"), 1); err != nil || len(r) > 0 {
		t.Errorf("Tail = %v, %v, want no records", r, err)
	}
}

func TestOnlyTheElectedSchedulerRunsAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		ran := map[string]chan struct{}{}
		workers := map[string]*workerlease.WorkerLease{}
		for rank, node := range []string{"anna", "ben"} {
			w, err := newClient(ledger).StartLeasing(t.Context(),
				workerlease.Options{WorkerType: "cron", InstanceID: node, Priority: rank, Continuous: true, FailoverWithin: time.Minute},
				workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {}})
			if err != nil {
				t.Fatal(err)
			}
			if err := (Elector{w}).IsLeader(t.Context()); err == nil {
				t.Errorf("IsLeader of %s = nil before the first slot", node)
			}
			runs := make(chan struct{}, 100)
			ran[node], workers[node] = runs, w
			s := schedule(t, 0, gocron.WithDistributedElector(Elector{w}), func() { runs <- struct{}{} })
			defer func() {
				if err := errors.Join(s.Shutdown(), w.StopLeasing(context.Background())); err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(18 * time.Minute)
		err := Elector{workers["ben"]}.IsLeader(t.Context())
		if err == nil || !strings.Contains(err.Error(), "anna") {
			t.Errorf("IsLeader of ben = %v, want an error that names anna", err)
		}
		if err := workers["anna"].StopLeasing(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Minute)
		// She leads from the start on, since nobody had the rest of that slot.
		if a, b := len(ran["anna"]), len(ran["ben"]); a != 3 || b != 2 {
			t.Errorf("run %d times by anna and %d times by ben, want at 5, 10, 15 and at 20, 25 min", a, b)
		}
	})
}

func TestEachJobHasAWorkerTypeOfItsOwn(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"", "a", "a b", "a-b", "é", "main.run.func1", "github.com/x/y.(*T).Job-fm", strings.Repeat("x", 70), strings.Repeat("x", 71)} {
		got := workerType(name)
		if err := store.CheckWorkerType(got); err != nil {
			t.Errorf("workerType(%q) = %q: %v", name, got, err)
		}
		if other, found := seen[got]; found {
			t.Errorf("workerType(%q) = %q, as of %q", name, got, other)
		}
		seen[got] = name
	}
}

func TestTheExampleRunsThreeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		began := time.Now()
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 5*time.Second || took > 6*time.Second || strings.Count(out.String(), "run ") != 3 {
			t.Errorf("after %v:\n%s\nwant one run at each of 1, 3 and 5 s", took, &out)
		}
	})
}

func newClient(ledger *memory.Ledger) *workerlease.Client {
	return workerlease.NewClient(ledger.Handle(), workerlease.ClientOptions{})
}

// schedule starts a scheduler whose clock is ahead, with a job every 5 minutes.
func schedule(t *testing.T, ahead time.Duration, o gocron.SchedulerOption, job func()) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(o, gocron.WithLocation(time.UTC), gocron.WithClock(skewed{clockwork.NewRealClock(), ahead}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewJob(gocron.CronJob("*/5 * * * *", false), gocron.NewTask(job), gocron.WithName("report")); err != nil {
		t.Fatal(err)
	}
	s.Start()
	return s
}
