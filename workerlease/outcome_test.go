package workerlease_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// exitError is the error of a command.
type exitError int

func (e exitError) Error() string { return fmt.Sprint("exit status ", int(e)) }
func (e exitError) ExitCode() int { return int(e) }

// told are the outcomes that the records of a ledger tell, oldest first.
func told(t *testing.T, l store.Ledger) (all []store.Outcome) {
	t.Helper()
	for _, r := range records(t, l) {
		if o, ok := r.Outcome(); ok {
			all = append(all, o)
		}
	}
	return all
}

// outcomes are what the records of a ledger tell, each in one line.
func outcomes(t *testing.T, l store.Ledger) []string {
	t.Helper()
	var out []string
	for _, r := range records(t, l) {
		o, ok := r.Outcome()
		if !ok {
			continue
		}
		line := fmt.Sprintf("%s: %s %s attempt %d", r.Kind, o.InstanceID, o.Result, o.Attempt)
		line += fmt.Sprintf(", slot %v, %v to %v", since(o.SlotStart), since(o.Begun).Round(5*time.Second), since(o.Ended).Round(5*time.Second))
		if o.GivenUp {
			line += ", given up"
		}
		if o.Exited {
			line += fmt.Sprintf(", exit code %d", o.ExitCode)
		}
		if o.Error != "" {
			line += ": " + o.Error
		}
		out = append(out, line)
	}
	return out
}

func TestWhatCameOfATaskIsInTheLedger(t *testing.T) {
	fails := func(err error, after time.Duration) workerlease.Task {
		return func(context.Context, workerlease.Lease) error {
			time.Sleep(after)
			return err
		}
	}
	job := named("a", 0)
	job.Job = &workerlease.Job{MaxAttempts: 2, MinRetry: time.Second}
	leader := named("a", 0)
	leader.Continuous = true
	stalls := named("a", 0)
	stalls.ProgressWithin = time.Minute
	stalls.FailoverWithin = 20 * time.Second
	// Nobody else is there, so it has the rest of the slot again, after a wait that grows.
	hung := []string{
		"release: a failed attempt 0, slot 5m0s, 5m0s to 6m0s: no progress for 1m0s",
		"release: a failed attempt 0, slot 5m0s, 6m10s to 7m10s: no progress for 1m0s",
		"release: a failed attempt 0, slot 5m0s, 7m30s to 8m30s: no progress for 1m0s",
	}
	for name, test := range map[string]struct {
		o    workerlease.Options
		task workerlease.Task
		want []string
	}{
		"success":         {named("a", 0), fails(nil, time.Minute), nil},
		"an error":        {named("a", 0), fails(errWork, time.Minute), []string{"release: a failed attempt 0, slot 5m0s, 5m0s to 6m0s: no paper"}},
		"an exit code":    {named("a", 0), fails(fmt.Errorf("backup: %w", exitError(3)), time.Minute), []string{"release: a failed attempt 0, slot 5m0s, 5m0s to 6m0s, exit code 3: backup: exit status 3"}},
		"a leader's task": {leader, fails(errWork, 90*time.Second), []string{"release: a failed attempt 0, slot 5m0s, 5m0s to 6m30s: no paper"}},
		"a job is done":   {job, fails(nil, 90*time.Second), []string{"done: a succeeded attempt 1, slot 5m0s, 5m0s to 6m30s"}},
		"a job that fails": {job, fails(exitError(3), time.Second), []string{
			"release: a failed attempt 1, slot 5m0s, 5m0s to 5m0s, exit code 3: exit status 3",
		}},
		"a panic":   {named("a", 0), func(context.Context, workerlease.Lease) error { panic("jam") }, []string{"release: a failed attempt 0, slot 5m0s, 5m0s to 5m0s: task: lease callback panicked: jam"}},
		"no answer": {named("a", 0), func(ctx context.Context, _ workerlease.Lease) error { <-ctx.Done(); return context.Cause(ctx) }, nil},
		"too late":  {named("a", 0), func(ctx context.Context, _ workerlease.Lease) error { <-ctx.Done(); return errWork }, []string{"outcome: a failed attempt 0, slot 5m0s, 5m0s to 10m0s: no paper"}},
		"no more":   {stalls, func(ctx context.Context, _ workerlease.Lease) error { <-ctx.Done(); return context.Cause(ctx) }, hung},
		"no more at all, and then an error": {stalls, func(ctx context.Context, _ workerlease.Lease) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			return errWork
		}, hung},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			slots := 0
			start(t, setup{ledger: ledger, Options: test.o, task: func(ctx context.Context, l workerlease.Lease) error {
				if slots++; slots > 1 {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return test.task(ctx, l)
			}})
			at(11 * time.Minute)
			equal(t, "outcomes", outcomes(t, ledger), test.want...)
		})
	}
}

// Where nothing else is appended, one record tells it.
func TestAFailureThatReleasesNothingIsToldByARecordOfItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		o    func(o *workerlease.Options)
		work func(l workerlease.Lease)
		want string
	}{
		"the lease is kept":  {work: func(l workerlease.Lease) { l.FailedWith(exitError(3)); l.Failed() }, want: "outcome: a failed attempt 0, slot 5m0s, 5m0s to 6m0s, exit code 3: exit status 3"},
		"without an error":   {work: workerlease.Lease.Failed, want: "outcome: a failed attempt 0, slot 5m0s, 5m0s to 6m0s"},
		"a panic":            {work: func(workerlease.Lease) { panic("jam") }, want: "outcome: a failed attempt 0, slot 5m0s, 5m0s to 6m0s: LeaseAllocated: lease callback panicked: jam"},
		"leases are parts":   {o: func(o *workerlease.Options) { o.FailoverWithin = 20 * time.Second }, work: workerlease.Lease.Failed, want: "outcome: a failed attempt 0, slot 5m0s, 5m0s to 6m0s"},
		"the lease leads on": {o: func(o *workerlease.Options) { o.Continuous = true }, work: workerlease.Lease.Failed, want: "outcome: a failed attempt 0, slot 5m0s, 5m0s to 6m0s"},
		"in a group":         {o: func(o *workerlease.Options) { o.Group = "eu" }, work: workerlease.Lease.Failed, want: "outcome: a failed attempt 0, slot 5m0s, 5m0s to 6m0s"},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := named("a", 0)
			if test.o != nil {
				test.o(&o)
			}
			w := start(t, setup{ledger: ledger, Options: o, work: func(ctx context.Context, l workerlease.Lease) {
				if since(l.Slot.Start) == 5*time.Minute {
					time.Sleep(time.Minute)
					test.work(l)
				}
				<-ctx.Done()
			}})
			at(7 * time.Minute)
			equal(t, "outcomes", outcomes(t, ledger), test.want)
			at(11 * time.Minute)
			equal(t, "outcomes", outcomes(t, ledger), test.want)
			head := records(t, ledger)[0]
			for _, r := range records(t, ledger)[1:] {
				if r.Kind == store.KindOutcome && (r.Claim != head.Claim || r.Token != head.Token || r.InstanceID != head.InstanceID || r.Group != head.Group || !r.WindowEnd.Equal(head.WindowEnd) || !r.WindowStart.Equal(head.WindowEnd)) {
					t.Errorf("%+v changes the term in %+v", r, head)
				}
				head = r
			}
			if panicked := len(observed[event.Panic](w)) > 0; !panicked && len(w.history()) > 0 && !w.IsHolder() {
				t.Error("the worker has no lease in the next slot")
			}
		})
	}
}

// All members of a group do the work of a slot, and each tells what came of its own.
func TestEachMemberOfAGroupTellsWhatCameOfItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		for i, name := range []string{"a", "b", "c"} {
			start(t, setup{ledger: ledger.Handle(), Options: inGroup(name, "eu", 0), task: func(ctx context.Context, l workerlease.Lease) error {
				time.Sleep(time.Duration(i) * time.Second)
				if l.InstanceID == "c" {
					return nil
				}
				return exitError(i)
			}})
		}
		at(6 * time.Minute)
		got := outcomes(t, ledger)
		slices.Sort(got)
		equal(t, "outcomes", got, "outcome: a failed attempt 0, slot 5m0s, 5m0s to 5m0s, exit code 0: exit status 0", "outcome: b failed attempt 0, slot 5m0s, 5m0s to 5m0s, exit code 1: exit status 1")
	})
}

// The next slot is claimed, so that the rest of this one can't be released.
func TestAFailureThatCanNoLongerReleaseIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		start(t, setup{ledger: ledger, Options: named("a", 0), task: func(ctx context.Context, l workerlease.Lease) error {
			if since(l.Slot.Start) == 5*time.Minute {
				time.Sleep(4*time.Minute + 55*time.Second)
				return exitError(3)
			}
			return nil
		}})
		at(11 * time.Minute)
		equal(t, "outcomes", outcomes(t, ledger), "outcome: a failed attempt 0, slot 5m0s, 5m0s to 9m55s, exit code 3: exit status 3")
	})
}

// A missed slot was done late.
func TestWhatCameOfAMissedSlotIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"success": {nil, "done: b succeeded attempt 1, slot 10m0s, 15m0s to 15m30s"},
		"failure": {exitError(3), "release: b failed attempt 1, slot 10m0s, 15m0s to 15m30s, given up, exit code 3: exit status 3"},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := named("a", 0)
			o.Job = &workerlease.Job{CatchUp: workerlease.CatchUpNewest, MaxAttempts: 1}
			a := runs(t, ledger.Handle(), o, func(context.Context, workerlease.Lease) error { return nil })
			at(6 * time.Minute)
			a.cancel()
			o.InstanceID = "b"
			at(11 * time.Minute)
			runs(t, ledger.Handle(), o, func(_ context.Context, l workerlease.Lease) error {
				if l.Missed {
					time.Sleep(30 * time.Second)
					return test.err
				}
				time.Sleep(time.Minute)
				return nil
			})
			at(17 * time.Minute)
			equal(t, "outcomes", outcomes(t, ledger), "done: a succeeded attempt 1, slot 5m0s, 5m0s to 5m0s", test.want, "done: b succeeded attempt 1, slot 15m0s, 15m30s to 16m30s")
		})
	}
}

// keepsFailing is a worker whose code fails a minute after each slot has begun, and keeps its lease.
func keepsFailing(o workerlease.Options, l store.Ledger) setup {
	return setup{ledger: l, Options: o, work: func(ctx context.Context, l workerlease.Lease) {
		time.Sleep(time.Minute)
		l.FailedWith(exitError(3))
		<-ctx.Done()
	}}
}

// ofKind counts the records of a kind.
func ofKind(t *testing.T, l store.Ledger, k store.Kind) (n int) {
	t.Helper()
	for _, r := range records(t, l) {
		if r.Kind == k {
			n++
		}
	}
	return n
}

func TestAFailureIsToldOnceWhateverBecomesOfTheReply(t *testing.T) {
	for name, fault := range map[string]faultstore.Fault{
		"the reply is lost":      faultstore.LostReply(),
		"the append is lost":     faultstore.Failure(),
		"it lands a bit later":   faultstore.LandsLate(70 * time.Millisecond),
		"it lands much later":    faultstore.LandsLate(20 * time.Second),
		"a driver sent it twice": faultstore.OwnConflict(),
		"it was not stored":      {Effect: faultstore.Dropped, Err: store.ErrNotStored},
	} {
		bubble(t, name, func(t *testing.T) {
			inner := memory.New(memory.Options{})
			start(t, keepsFailing(named("a", 0), struck(t, inner.Handle(), once(faultstore.OpAppend, 2, fault))))
			at(9 * time.Minute)
			if n := ofKind(t, inner, store.KindOutcome); n != 1 {
				t.Errorf("%d records tell the failure, want one", n)
			}
			at(16 * time.Minute)
			if n := ofKind(t, inner, store.KindOutcome); n != 2 {
				t.Errorf("%d records tell the failures of two slots, want one each", n)
			}
		})
	}
}

// An outcome whose append hangs delays neither claims, nor extensions, nor a stop.
func TestAnOutcomeThatHangsDelaysNothing(t *testing.T) {
	for name, o := range map[string]workerlease.Options{
		"slots": {LeaseInterval: 5 * time.Minute},
		"parts": {LeaseInterval: 5 * time.Minute, FailoverWithin: 10 * time.Second},
		"short": {LeaseInterval: 6 * time.Second, FailoverWithin: 3 * time.Second},
		"on":    {LeaseInterval: 5 * time.Minute, Continuous: true},
	} {
		// ahead is how long before their windows grants are sent.
		ahead := func(t *testing.T, hangs bool) (ahead []time.Duration) {
			ledger := &hooked{Ledger: memory.New(memory.Options{})}
			ledger.beforeAppend = func(r store.Record) {
				if r.Kind == store.KindGrant {
					ahead = append(ahead, r.WindowStart.Sub(time.Now()))
				}
			}
			before := struck(t, ledger, when(func(c faultstore.Call) bool {
				return hangs && c.Op == faultstore.OpAppend && c.Record.Kind == store.KindOutcome
			}, faultstore.BlackHole(faultstore.Dropped)))
			o.WorkerType, o.InstanceID = "job", "a"
			w := start(t, setup{ledger: before, Options: o, work: func(ctx context.Context, l workerlease.Lease) {
				time.Sleep(l.Slot.Length() / 3)
				l.FailedWith(exitError(3))
				<-ctx.Done()
			}})
			at(4*o.LeaseInterval + o.LeaseInterval/3 + time.Second)
			began := time.Now()
			must(t, w.StopLeasing(t.Context()))
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("StopLeasing took %v, want no more than what is under way", took)
			}
			return ahead
		}
		var with, without []time.Duration
		bubble(t, name+" without", func(t *testing.T) { without = ahead(t, false) })
		bubble(t, name+" with", func(t *testing.T) { with = ahead(t, true) })
		// The first claim comes at random within its turn, and others as early as the time is uncertain.
		if len(with) < 4 || len(with) != len(without) || slices.Min(with[1:]) < slices.Min(without[1:])-50*time.Millisecond {
			t.Errorf("%s: grants sent %v ahead, want %v as without outcomes that hang", name, with, without)
		}
	}
}

// A success costs nothing, and what is recorded anyway tells what came of the work at no extra cost.
func TestWhatOutcomesCost(t *testing.T) {
	const slots = 20
	task := func(err error) func(o workerlease.Options, l store.Ledger) setup {
		return func(o workerlease.Options, l store.Ledger) setup {
			return setup{ledger: l, Options: o, task: func(context.Context, workerlease.Lease) error {
				time.Sleep(time.Minute)
				return err
			}}
		}
	}
	once := func(o *workerlease.Options) { o.Job = &workerlease.Job{} }
	for name, test := range map[string]struct {
		o              func(*workerlease.Options)
		setup          func(o workerlease.Options, l store.Ledger) setup
		appends, tails int // for each slot
		records        int // that tell an outcome alone
	}{
		"success":                            {setup: task(nil), appends: 1, tails: 1},
		"a failure releases":                 {setup: task(errWork), appends: 2, tails: 2},
		"failure under a lease that is kept": {setup: keepsFailing, appends: 2, tails: 2, records: slots},
		"a job is recorded as done":          {o: once, setup: task(nil), appends: 3, tails: 2}, // with one extension
		"a job fails again and again":        {o: once, setup: task(errWork)},
	} {
		bubble(t, name, func(t *testing.T) {
			inner := memory.New(memory.Options{})
			counter := faultstore.NewCounter(inner)
			o := named("a", 0)
			if test.o != nil {
				test.o(&o)
			}
			start(t, test.setup(o, counter))
			at(time.Minute)
			counter.Reset()
			at(slots*5*time.Minute + 150*time.Second)
			got := counter.Counts()
			if n := ofKind(t, inner, store.KindOutcome); n != test.records {
				t.Errorf("%d records of outcomes in %d slots, want %d", n, slots, test.records)
			}
			if test.appends > 0 && (got[faultstore.OpAppend] != slots*test.appends || got[faultstore.OpTail] != slots*test.tails || got[faultstore.OpNow] != slots || got[faultstore.OpGet] != 0) {
				t.Errorf("%v in %d slots, want %d appends and %d tails each, and one sample", got, slots, test.appends, test.tails)
			}
		})
	}
}

// The newest error of a worker says what failed, also once its slot is given up.
func TestTheNewestErrorSaysWhatFailed(t *testing.T) {
	for name, c := range map[string]struct {
		job  workerlease.Job
		task workerlease.Task
		want string
	}{
		"the last attempt": {
			workerlease.Job{MaxAttempts: 1},
			func(context.Context, workerlease.Lease) error { return errWork },
			"job: task in slot [2000-01-01T00:05:00Z, 2000-01-01T00:10:00Z): no paper; given up (attempts: 1)",
		},
		"one that is cut": {
			workerlease.Job{Overrun: workerlease.Stop},
			func(ctx context.Context, _ workerlease.Lease) error { <-ctx.Done(); return context.Cause(ctx) },
			"job: task in slot [2000-01-01T00:05:00Z, 2000-01-01T00:10:00Z): cut at the end of its slot",
		},
	} {
		bubble(t, name, func(t *testing.T) {
			o := named("a", 0)
			o.Job = &c.job
			w := start(t, setup{Options: o, ledger: memory.New(memory.Options{}), task: c.task})
			at(10 * time.Minute)
			if got := w.Status().LastError; got == nil || got.Error() != c.want {
				t.Errorf("the newest error is %q, want %q", got, c.want)
			}
		})
	}
}
