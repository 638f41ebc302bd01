package workerlease_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

var changeSeeds = flag.Int("schedulechange.seeds", 2, "how many seeds of each change of a schedule are run")

// schedulePairs are schedules that replace each other, in both directions.
var schedulePairs = [][2]string{
	// Denser, and sparser.
	{"cron 0 2 * * *", "cron 0 2,14 * * *"},
	{"cron 0 2 * * *", "cron 0 * * * *"},
	{"cron 0 2 * * *", "cron */20 * * * *"},
	{"cron 0 2 * * 1", "cron 0 2 * * 1,5"},
	{"cron 0 2 * * 1", "cron 0 2 * * *"},
	{"cron 0 2 1 * *", "cron 0 2 * * *"},
	{"cron 0 2 1 * *", "cron 0 2 * * 1"},
	{"cron 0 2 1 * *", "cron 0 2 1,15 * *"},
	{"cron 0 0 1 * *", "every 6h"},
	{"cron 0 * * * *", "cron 0,30 * * * *"},
	{"cron 0 * * * *", "cron 15,30,45 * * * *"},
	{"cron 30 1,13 * * *", "cron 0 */3 * * *"},
	{"every 24h", "every 1h"},
	{"every 24h", "every 7h"},
	{"every 1h", "every 5m"},
	{"every 1h", "every 7m"},
	{"every 168h", "every 24h"},
	{"every 5m", "every 1m"},
	{"every 10m", "every 1m30s"},
	// Shifted.
	{"cron 0 2 * * *", "cron 0 3 * * *"},
	{"cron 0 2 * * *", "cron 5 2 * * *"},
	{"cron 0 2 * * *", "cron 59 1 * * *"},
	{"cron 0 23 * * *", "cron 0 1 * * *"},
	{"cron 0 2 * * 1", "cron 0 2 * * 2"},
	{"cron 0 2 * * 1", "cron 0 4 * * 0"},
	{"cron 0 2 1 * *", "cron 0 2 2 * *"},
	{"cron 0 * * * *", "cron 30 * * * *"},
	{"cron 0 9-17 * * *", "cron 0 18-23 * * *"},
	{"cron 0 2 * * 1-5", "cron 0 2 * * 0,6"},
	// Intervals that don't divide each other.
	{"every 45m", "every 1h"},
	{"every 7m", "every 5m"},
	{"every 90s", "every 1m"},
	{"every 36h", "cron 0 2 * * *"},
	// In zones, over a change of the clocks.
	{"cron 0 2 * * *", "cron 0 2 * * * Europe/Berlin"},
	{"cron 30 2 * * * Europe/Berlin", "cron 30 2,14 * * * Europe/Berlin"},
	{"cron 0 2 * * * America/New_York", "cron 0 2 * * * Europe/Berlin"},
	{"cron 0 * * * * Asia/Kolkata", "cron 0 * * * *"},
	{"cron 30 1 * * * Australia/Lord_Howe", "cron 0 */6 * * * Australia/Lord_Howe"},
	{"cron 0 2 * * 0 Europe/Berlin", "cron 0 2 * * * Europe/Berlin"},
	{"every 24h", "cron 0 1 * * * Europe/London"},
}

// changed is one change of a schedule: when workers of which kind live, and what they run.
type changed struct {
	before, after slots.Schedule
	start, deploy time.Time // of the old workers, and of the new ones
	stop, end     time.Time // of the old workers, and of all
	job           workerlease.Job
	workers       int
	forgets       bool // the old workers are of a version that knows nothing of Record.Done
	runs          map[time.Time][]string
	late          []string
}

func draw(r *rand.Rand, before, after slots.Schedule) *changed {
	c := &changed{before: before, after: after, workers: 1 + r.IntN(2), forgets: r.IntN(4) == 0, runs: map[time.Time][]string{}}
	c.job.CatchUp = workerlease.CatchUp(r.IntN(2))
	c.start = time.Date(2000, 3, 24, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(int64(24 * time.Hour))))
	first := before.Next(c.start) // It is done when the new workers come.
	c.deploy = first.Start.Add(5*time.Second + time.Duration(r.Int64N(int64(before.Next(first.Start).End.Sub(first.Start)))))
	switch near := []slots.Slot{before.Next(c.deploy), after.Next(c.deploy)}[r.IntN(2)]; r.IntN(3) {
	case 0: // The boundary of one of them is near.
		c.deploy = near.Start.Add(time.Duration(r.Int64N(int64(time.Minute))) - 30*time.Second)
	}
	longest := max(before.At(c.deploy).Length(), after.At(c.deploy).Length())
	shortest := min(before.At(c.deploy).Length(), after.At(c.deploy).Length())
	c.end = c.deploy.Add(min(longest*5/2, 300*shortest))
	c.stop = c.deploy
	if r.IntN(2) == 0 { // Both are alive.
		c.stop = c.deploy.Add(time.Duration(r.Int64N(int64(c.end.Sub(c.deploy)))))
	}
	return c
}

func (c *changed) run(t *testing.T) {
	var ledger store.Ledger = memory.New(memory.Options{})
	begin := func(s slots.Schedule, l store.Ledger) (all []*workerlease.WorkerLease) {
		client := workerlease.NewClient(l, workerlease.ClientOptions{})
		for range c.workers {
			w, err := client.StartTask(context.Background(), workerlease.Options{WorkerType: "report", Schedule: s, Job: &c.job, WaitForBoundary: true}, func(_ context.Context, l workerlease.Lease) error {
				text := fmt.Sprintf("%s for %v by %q", time.Now().UTC().Format(time.DateTime), l.Slot, s)
				if l.Missed {
					c.late = append(c.late, text)
				} else {
					c.runs[l.Slot.Start] = append(c.runs[l.Slot.Start], text)
				}
				time.Sleep(time.Second)
				return nil
			})
			must(t, err)
			all = append(all, w)
		}
		return all
	}
	stop := func(all []*workerlease.WorkerLease) {
		for _, w := range all {
			must(t, w.StopLeasing(context.Background()))
		}
	}
	time.Sleep(time.Until(c.start))
	older := begin(c.before, forgetful{ledger, c.forgets})
	time.Sleep(time.Until(c.deploy))
	var newer []*workerlease.WorkerLease
	if c.stop.Equal(c.deploy) {
		stop(older)
		newer = begin(c.after, ledger)
	} else {
		newer = begin(c.after, ledger)
		time.Sleep(time.Until(c.stop))
		stop(older)
	}
	time.Sleep(time.Until(c.end))
	stop(newer)
	synctest.Wait()
}

// forgetful is a ledger for workers of an earlier version, if it forgets.
type forgetful struct {
	store.Ledger
	forgets bool
}

func (l forgetful) Append(ctx context.Context, r store.Record) error {
	if l.forgets {
		r.Done = ""
	}
	return l.Ledger.Append(ctx, r)
}

func (l forgetful) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := l.Ledger.Tail(ctx, workerType, limit)
	if l.forgets {
		for i := range records {
			records[i].Done = ""
		}
	}
	return records, stamp, err
}

// edge is how soon after its start a worker may not take part, and how long before its end it may not any more.
const edge = 31 * time.Second

// check demands that each slot is run once which begins while workers of its schedule live, and
// that nothing is made up for, as nothing was missed.
func (c *changed) check(t *testing.T) {
	for _, text := range c.late {
		t.Errorf("made up for without need, at %s", text)
	}
	for at, runs := range c.runs {
		if len(runs) > 1 {
			t.Errorf("the slot of %v is run %d times: %v", at, len(runs), runs)
		}
	}
	for _, of := range []struct {
		slots.Schedule
		from, to time.Time
	}{{c.before, c.start, c.stop}, {c.after, c.deploy, c.end}} {
		for slot := range slots.Upcoming(of, of.from.Add(edge)) {
			if !slot.Start.Before(of.to.Add(-edge)) {
				break
			}
			lost := c.forgets && c.deploy.Before(c.stop) // As ever: the earlier version takes what ends by DoneUntil for done.
			if n := len(c.runs[slot.Start]); n != 1 && (n > 0 || !lost) {
				t.Errorf("the slot %v of %q is run %d times, want once", slot, of, len(c.runs[slot.Start]))
			}
		}
	}
	if t.Failed() {
		t.Logf("started %v, deployed %v, old ones stopped %v, end %v, %d workers, forget %v, %+v", c.start, c.deploy, c.stop, c.end, c.workers, c.forgets, c.job)
	}
}

func TestEachSlotIsRunOnceWhenAScheduleChanges(t *testing.T) {
	for n, pair := range schedulePairs {
		for _, way := range [][2]string{pair, {pair[1], pair[0]}} {
			for seed := range *changeSeeds {
				t.Run(fmt.Sprintf("%s becomes %s, seed %d", way[0], way[1], seed), func(t *testing.T) {
					t.Parallel()
					c := draw(rand.New(rand.NewPCG(uint64(seed), uint64(n))), slots.Must(slots.Parse(way[0])), slots.Must(slots.Parse(way[1])))
					synctest.Test(t, c.run)
					c.check(t)
				})
			}
		}
	}
}

func TestASlotOfADenserScheduleIsClaimedOnceAndThenDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		client := workerlease.NewClient(ledger, workerlease.ClientOptions{})
		try := func(spec string) error {
			o := workerlease.Options{WorkerType: "report", Schedule: slots.Must(slots.Cron(spec, "")), Job: &workerlease.Job{}}
			timing, err := o.Timing()
			must(t, err)
			o.Job.StartWithin = timing.ShortestSlot
			claim, err := client.TryClaim(t.Context(), o)
			if err != nil {
				return err
			}
			return claim.Complete(t.Context())
		}
		at(15 * time.Hour)
		for _, c := range []struct {
			spec string
			done bool
		}{
			{"0 2 * * *", false},
			{"0 2 * * *", true},
			{"0 2,14 * * *", false},
			{"0 2,14 * * *", true},
			{"0 * * * *", false},
			{"0 * * * *", true},
			{"0 2 * * *", true}, // What began after it is done.
			{"0 2 * * 6", true}, // The bubble begins on a Saturday.
		} {
			err := try(c.spec)
			if c.done != errors.Is(err, workerlease.ErrNotClaimed) || c.done && !strings.HasSuffix(err.Error(), "is done") || !c.done && err != nil {
				t.Errorf("a claim by %s: %v, want that the slot is done: %v", c.spec, err, c.done)
			}
		}
		records, _, err := ledger.Tail(t.Context(), "report", 100)
		must(t, err)
		var done []string
		for _, e := range history.Read(records, time.Now(), nil) {
			done = append(done, fmt.Sprintf("%s %s", e.Slot, e.State))
		}
		want := []string{"[2000-01-01T02:00:00Z, 2000-01-02T02:00:00Z) done", "[2000-01-01T14:00:00Z, 2000-01-02T02:00:00Z) done", "[2000-01-01T15:00:00Z, 2000-01-01T16:00:00Z) done"}
		if !slices.Equal(done, want) {
			t.Errorf("the history is %q, want %q", done, want)
		}
	})
}
