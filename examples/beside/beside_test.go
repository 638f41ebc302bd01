package beside

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/workerlease"
)

func pool(t *testing.T, statements ...string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), postgrespeer.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	for _, s := range statements {
		if _, err := p.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func redisClient(t *testing.T) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(redispeer.Shared(t))
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// While leaders of both kinds compete, at most one works, and each kind does in turn.
func TestLeadersOfBothKindsExcludeEachOther(t *testing.T) {
	for name, lock := range map[string]func(t *testing.T) func(worker string) Lock{
		"an advisory lock": func(t *testing.T) func(string) Lock {
			p := pool(t)
			return func(string) Lock { return Advisory{p, 42} }
		},
		"a Redis lock": func(t *testing.T) func(string) Lock {
			c := redisClient(t)
			return func(string) Lock { return Redis{c, t.Name(), 3 * time.Second} }
		},
		"client-go": func(t *testing.T) func(string) Lock {
			var shared leaseObject
			return func(worker string) Lock {
				return Election{leaderelection.LeaderElectionConfig{
					LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
					Lock: &leaseLock{lease: &shared, worker: worker},
				}}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := lock(t)
			var w work
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			for i := range 2 {
				worker, old := fmt.Sprint("new-", i), of(fmt.Sprint("old-", i))
				running.Go(func() {
					for ctx.Err() == nil {
						if held, unlock, err := old.TryLock(ctx); err == nil && held != nil {
							w.do(held, "old", 200*time.Millisecond)
							unlock()
						}
						time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
					}
				})
				running.Go(func() {
					task := func(ctx context.Context, _ workerlease.Lease) error {
						w.do(ctx, "new", 300*time.Millisecond)
						return nil
					}
					o := workerlease.Options{WorkerType: "leader", LeaseInterval: time.Second}
					if err := w.client().Run(ctx, o, Both(of(worker), 20*time.Millisecond, task)); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				})
			}
			w.until(t, "each kind has worked three times", func(done map[string]int) bool { return done["old"] >= 3 && done["new"] >= 3 })
			stop()
			running.Wait()
			if w.together > 0 {
				t.Errorf("%d times two worked at once", w.together)
			}
		})
	}
}

// work is done by one at a time, or it counts how often it isn't.
type work struct {
	sync.Mutex
	ledger   *memory.Ledger
	inside   int
	together int
	done     map[string]int
}

// client is one of a worker, on the ledger of all.
func (w *work) client() *workerlease.Client {
	w.Lock()
	defer w.Unlock()
	if w.ledger == nil {
		w.ledger = memory.New(memory.Options{})
	}
	return workerlease.NewClient(w.ledger, workerlease.ClientOptions{})
}

func (w *work) do(ctx context.Context, kind string, d time.Duration) {
	w.enter(1)
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	w.enter(-1)
	w.Lock()
	defer w.Unlock()
	if w.done == nil {
		w.done = map[string]int{}
	}
	w.done[kind]++
}

func (w *work) enter(n int) {
	w.Lock()
	defer w.Unlock()
	if w.inside += n; w.inside > 1 {
		w.together++
	}
}

func (w *work) until(t *testing.T, what string, is func(done map[string]int) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		w.Lock()
		ok := is(w.done)
		w.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a minute later it isn't so that %s: %v", what, w.done)
		}
	}
}

const period = 2 * time.Second // of the jobs of these tests

// A job that both systems run is run once for each time at which it is due: while the old system is alone, while both are
// there, and when the old one has gone.
func TestEachRunHappensOnceWhileBothSystemsAreThere(t *testing.T) {
	for name, tickets := range map[string]func(t *testing.T) (before func(machine string) Ticket, after Ticket){
		"a table": func(t *testing.T) (func(string) Ticket, Ticket) {
			p := pool(t, `CREATE TABLE job_runs (job text, due timestamptz, by text NOT NULL, PRIMARY KEY (job, due))`)
			return func(machine string) Ticket { return Runs(p, "report", machine) }, Runs(p, "report", "slotlease")
		},
		"Redis": func(t *testing.T) (func(string) Ticket, Ticket) {
			c := redisClient(t)
			return func(machine string) Ticket { return RedisRuns(c, t.Name(), machine, time.Hour) }, RedisRuns(c, t.Name(), "slotlease", time.Hour)
		},
		"ShedLock": func(t *testing.T) (func(string) Ticket, Ticket) {
			p := pool(t, `CREATE TABLE shedlock (name varchar(64) PRIMARY KEY, lock_until timestamp NOT NULL, locked_at timestamp NOT NULL, locked_by varchar(255) NOT NULL)`)
			return func(string) Ticket { return shedLock(p, "report", period*3/4) }, Shed(p, "report", period*3/4)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := tickets(t)
			var r runs
			r.sideBySide(t, func(ctx context.Context, machine string, due time.Time) {
				if mine, err := before(machine)(ctx, due); err != nil {
					t.Error(err)
				} else if mine {
					r.add(due, "old "+machine)
				}
			}, Once(after, func(_ context.Context, l workerlease.Lease) error {
				r.add(l.Slot.Start, "new")
				return nil
			}))
			r.expectEachOnce(t)
		})
	}
}

// shedLock is how ShedLock itself takes a row, by the statement of its JdbcTemplateLockProvider for PostgreSQL with usingDbTime:
// once, whoever has it.
func shedLock(p *pgxpool.Pool, job string, atLeast time.Duration) Ticket {
	return func(ctx context.Context, _ time.Time) (bool, error) {
		done, err := p.Exec(ctx, `INSERT INTO shedlock(name, lock_until, locked_at, locked_by)
			VALUES($1, timezone('utc', CURRENT_TIMESTAMP) + $2, timezone('utc', CURRENT_TIMESTAMP), 'java')
			ON CONFLICT (name) DO UPDATE SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + $2, locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = 'java'
			WHERE shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)`, job, atLeast)
		return err == nil && done.RowsAffected() == 1, err
	}
}

type reportArgs struct{}

func (reportArgs) Kind() string { return "report" }

// river's periodic job and the task in its place insert one job for each period.
func TestRiverGetsOneJobOfEachPeriodWhileBothInsertIt(t *testing.T) {
	t.Parallel()
	p := pool(t)
	driver := riverpgxv5.New(p)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	client, err := river.NewClient[pgx.Tx](driver, &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
	task := River(client, reportArgs{}, period)
	var r runs
	r.sideBySide(t, func(ctx context.Context, _ string, _ time.Time) {
		if _, err := client.Insert(ctx, reportArgs{}, Unique(period)); err != nil {
			t.Error(err)
		}
	}, task)
	rows, err := p.Query(t.Context(), `SELECT created_at FROM river_job ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	times, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range times {
		r.add(at.Truncate(period), "river")
	}
	r.expectEachOnce(t)
}

// runs are those that happened, by the time at which they were due.
type runs struct {
	sync.Mutex
	by       map[time.Time][]string
	from, to time.Time // the runs between these are complete
}

func (r *runs) add(due time.Time, by string) {
	r.Lock()
	defer r.Unlock()
	if r.by == nil {
		r.by = map[time.Time][]string{}
	}
	r.by[due.UTC()] = append(r.by[due.UTC()], by)
}

// sideBySide runs two old machines, which fire when a run is due, or a little later; then besides them two workers; and then
// those alone.
func (r *runs) sideBySide(t *testing.T, fire func(ctx context.Context, machine string, due time.Time), task workerlease.Task) {
	t.Helper()
	old, endOld := context.WithCancel(t.Context())
	next, endNext := context.WithCancel(t.Context())
	var running sync.WaitGroup
	r.from = time.Now().Truncate(period).Add(period)
	for _, machine := range []string{"a", "b"} {
		running.Go(func() {
			for due := r.from; ; due = due.Add(period) {
				late := time.Duration(rand.Int64N(int64(period / 8)))
				select {
				case <-old.Done():
					return
				case <-time.After(time.Until(due.Add(late))):
					fire(context.WithoutCancel(old), machine, due)
				}
			}
		})
	}
	mid := func(n int) { time.Sleep(time.Until(r.from.Add(time.Duration(n)*period + period/2))) }
	mid(1)
	ledger := memory.New(memory.Options{})
	for range 2 {
		running.Go(func() {
			o := workerlease.Options{
				WorkerType: "report", LeaseInterval: period, WaitForBoundary: true, Job: &workerlease.Job{StartWithin: period / 4},
			}
			if err := workerlease.NewClient(ledger, workerlease.ClientOptions{}).Run(next, o, task); err != nil && next.Err() == nil {
				t.Error(err)
			}
		})
	}
	mid(5)
	endOld()
	mid(8)
	r.to = time.Now().Truncate(period)
	endNext()
	running.Wait()
}

// expectEachOnce expects one run for each time at which one was due.
func (r *runs) expectEachOnce(t *testing.T) {
	t.Helper()
	r.Lock()
	defer r.Unlock()
	var all []string
	for due := r.from.UTC(); !due.After(r.to); due = due.Add(period) {
		by := r.by[due]
		all = append(all, fmt.Sprint(due.Format(time.TimeOnly), " ", by))
		if len(by) != 1 {
			t.Errorf("the run of %v happened %d times: %s", due.Format(time.TimeOnly), len(by), by)
		}
	}
	if len(all) < 8 || !slices.ContainsFunc(all, func(run string) bool { return !strings.Contains(run, "old") }) {
		t.Errorf("the runs are %s, want at least 8, the last of them by the new system", strings.Join(all, ", "))
	}
	t.Log(strings.Join(all, "\n"))
}
