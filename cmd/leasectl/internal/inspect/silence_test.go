package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/health"
	"github.com/slotlease/slotlease/workerlease/operate"
	"github.com/slotlease/slotlease/workerlease/promlease"
)

// site has two workers of a job with slots of a minute, and what is said of them. All begins at midnight.
type site struct {
	t       *testing.T
	ctx     context.Context
	ledger  *memory.Ledger
	link    map[string]*faultstore.Ledger
	metrics *prometheus.Registry
	observe *promlease.Metrics
	log     bytes.Buffer
	logger  *slog.Logger // writes it
	workers map[string]*workerlease.WorkerLease
	stop    map[string]func()

	options workerlease.Options

	mu      sync.Mutex
	refusal error // of appends
	task    func(ctx context.Context, minute int) error
}

// at waits for a time after midnight.
func at(minute, second int) {
	midnight := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	time.Sleep(time.Until(midnight.Add(time.Duration(minute)*time.Minute + time.Duration(second)*time.Second)))
	synctest.Wait()
}

// start starts a worker.
func (s *site) start(name string) {
	s.t.Helper()
	s.link[name] = faultstore.New(s.ledger.Handle(), faultstore.Options{Plan: func(c faultstore.Call) (f faultstore.Fault) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.refusal != nil && c.Op == faultstore.OpAppend {
			f = faultstore.Fault{Effect: faultstore.Dropped, Err: s.refusal}
		}
		return f
	}})
	ctx, cancel := context.WithCancel(s.ctx)
	o := s.options
	o.InstanceID = name
	client := workerlease.NewClient(s.link[name], workerlease.ClientOptions{Roster: true, Observer: s.observe, Logger: s.logger, Rand: rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32s", name))))})
	w, err := client.StartTask(ctx, o, func(ctx context.Context, l workerlease.Lease) error {
		s.mu.Lock()
		task := s.task
		s.mu.Unlock()
		return task(ctx, l.Slot.Start.Minute())
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.workers[name] = w
	s.stop[name] = func() {
		cancel()
		_ = w.StopLeasing(context.WithoutCancel(ctx))
	}
}

// warnings is a logger of what matters of each line, from WARN on.
func (s *site) warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if slices.Contains([]string{slog.LevelKey, slog.MessageKey, "why", "cause", "givenUp"}, a.Key) {
			return a
		}
		return slog.Attr{}
	}}))
}

// Write takes lines of the log.
func (s *site) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

// logged are the lines since it was asked last.
func (s *site) logged() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.TrimSpace(s.log.String())
	s.log.Reset()
	return strings.Split(text, "\n")
}

// does sets the task from now on.
func (s *site) does(task func(ctx context.Context, minute int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.task = task
}

// refuses sets what appends are answered from now on.
func (s *site) refuses(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = err
}

// works takes so long, or ends with its context.
func works(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ways are those in which a run is lost, or late. Each begins when the slot of 00:02 is done.
var ways = map[string]struct {
	options func(o *workerlease.Options)
	happens func(s *site)
}{
	"a run fails, and another is done": {nil, func(s *site) {
		var failed atomic.Bool
		s.does(func(ctx context.Context, _ int) error {
			if !failed.Swap(true) {
				return errors.New("disk full")
			}
			return works(ctx, time.Second)
		})
	}},
	"the last attempt fails": {nil, func(s *site) {
		s.does(func(context.Context, int) error { return errors.New("disk full") })
		at(3, 55)
		s.does(func(ctx context.Context, _ int) error { return works(ctx, time.Second) })
	}},
	"a run panics": {func(o *workerlease.Options) { o.Job.MaxAttempts = 1 }, func(s *site) {
		s.does(func(_ context.Context, minute int) error {
			if minute == 3 {
				panic("no such table")
			}
			return nil
		})
	}},
	"a run takes longer than Timeout": {func(o *workerlease.Options) { o.Job.Timeout = 20 * time.Second }, func(s *site) {
		s.does(func(ctx context.Context, minute int) error { return works(ctx, time.Duration(minute%2)*time.Minute) })
	}},
	"a run is cut at the end of its slot": {func(o *workerlease.Options) { o.Job.Overrun = workerlease.Stop }, func(s *site) {
		s.does(func(ctx context.Context, minute int) error { return works(ctx, time.Duration(minute%2)*2*time.Minute) })
	}},
	"a run takes 1.5 slots": {nil, func(s *site) {
		s.does(func(ctx context.Context, minute int) error { return works(ctx, time.Duration(minute%2)*90*time.Second) })
	}},
	"a run takes longer than two slots": {nil, func(s *site) {
		s.does(func(ctx context.Context, _ int) error { return works(ctx, time.Hour) })
	}},
	"a worker is cut off, or dies, in its run": {nil, func(s *site) {
		s.does(func(ctx context.Context, _ int) error { return works(ctx, 20*time.Second) })
		at(3, 5)
		s.link["a"].Break(faultstore.Down())
	}},
	"the store is down": {nil, func(s *site) {
		for _, l := range s.link {
			l.Break(faultstore.Down())
		}
	}},
	"the right to append is lost": {nil, func(s *site) { s.refuses(fmt.Errorf("%w: append", store.ErrDenied)) }},
	"the store refuses appends":   {nil, func(s *site) { s.refuses(fmt.Errorf("%w: the disk is full", store.ErrRefused)) }},
	"all workers are gone": {nil, func(s *site) {
		s.stop["a"]()
		s.stop["b"]()
	}},
	"all hosts are drained": {nil, func(s *site) {
		newest, _, err := s.ledger.Tail(s.ctx, "job", 1)
		s.must(err)
		s.order(operate.Order{Kind: store.OrderDrain, Target: newest[0].Worker.Host})
	}},
	"no worker is there in time": {nil, func(s *site) {
		s.stop["a"]()
		s.stop["b"]()
		at(3, 30)
		s.start("a")
	}},
	"the worker type is paused": {nil, func(s *site) { s.order(operate.Order{Kind: store.OrderPause}) }},
	"no worker is fit": {func(o *workerlease.Options) {
		o.Eligible = func(context.Context) error {
			if time.Now().Minute() >= 3 {
				return errors.New("the disk is full")
			}
			return nil
		}
	}, func(*site) {}},
	"a record can't be obeyed": {nil, func(s *site) {
		records, _, err := s.ledger.Tail(s.ctx, "job", 1)
		s.must(err)
		r := recordtest.Grant(records[0].Seq+1, 0, "z")
		r.WorkerType, r.Kind = "job", "lease v9"
		s.ledger.Put(r)
	}},
	"the store loses records": {nil, func(s *site) { s.ledger.Lose("job", 3) }},
	"the store's clock jumps": {nil, func(s *site) {
		for _, l := range s.link {
			l.Shift(-time.Hour, "")
		}
	}},
	"schedules differ": {nil, func(s *site) {
		s.stop["b"]()
		s.options.Schedule, s.options.LeaseInterval = slots.Must(slots.Every(90*time.Second)), 0
		s.start("b")
	}},
}

// order gives an order for an hour.
func (s *site) order(o operate.Order) {
	s.t.Helper()
	o.WorkerType, o.For, o.InstanceID, o.Reason = "job", time.Hour, "test", "maintenance"
	_, err := operate.On(s.ledger).Give(s.ctx, o)
	s.must(err)
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// told is what metrics say: the counters, and the gauges that alerts go by.
func (s *site) told() map[string]float64 {
	families, err := s.metrics.Gather()
	s.must(err)
	all := map[string]float64{}
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "slotlease_")
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "reason" {
					name = fmt.Sprintf("%s{%s}", strings.TrimPrefix(f.GetName(), "slotlease_"), label.GetValue())
				}
			}
			switch {
			case m.GetCounter().GetValue() > 0:
				all[name] = m.GetCounter().GetValue()
			case name == "worker_blocked" || name == "worker_paused" || name == "holder_known":
				all[name] = m.GetGauge().GetValue()
			case name == "job_due_timestamp_seconds":
				all["overdue"] = max(0, float64(time.Now().Unix())-m.GetGauge().GetValue())
			}
		}
	}
	return all
}

// routine are the counters that grow when all is well, too.
var routine = []string{"slots_won_", "slots_lost_", "slots_done_", "leases_allocated_", "leases_extended_", "leases_released_", "leases_expired_", "lease_held_", "tasks_succeeded_", "store_operations_", "store_conflicts_", "records_trimmed_"}

// measured is what differs from run to run, and from machine to machine, of what is said.
var measured = regexp.MustCompile(`[0-9]+ times|±[0-9m.]+s|host [^ ]+`)

// Whatever keeps a job from its run, or a run from its end, is told: by the log at WARN, by status, by the health of the workers
// and by metrics.
func TestNothingFailsInSilence(t *testing.T) {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		way := ways[name]
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				s := &site{
					t: t, ctx: ctx, ledger: memory.New(memory.Options{}), link: map[string]*faultstore.Ledger{}, metrics: prometheus.NewRegistry(),
					workers: map[string]*workerlease.WorkerLease{}, stop: map[string]func(){},
					options: workerlease.Options{WorkerType: "job", LeaseInterval: time.Minute, FailoverWithin: 10 * time.Second, Job: &workerlease.Job{MaxAttempts: 2}},
					task:    func(ctx context.Context, _ int) error { return works(ctx, time.Second) },
				}
				s.logger = s.warnings()
				var err error
				s.observe, err = promlease.New(s.metrics, promlease.Options{})
				s.must(err)
				if way.options != nil {
					way.options(&s.options)
				}
				s.start("a")
				at(0, 30) // It is the one that has the slots.
				s.start("b")
				at(2, 30)
				before := s.told()
				_ = s.logged()
				way.happens(s)
				at(6, 30)
				fmt.Fprintf(&text, "## %s\n\n", name)
				for _, line := range slices.Compact(slices.Sorted(slices.Values(s.logged()))) {
					fmt.Fprintf(&text, "log: %s\n", line)
				}
				o, _ := looks(t, s.ledger, "job")
				one := o.types[0]
				fmt.Fprintf(&text, "status: %s; overdue %v\n", strings.Join(slices.DeleteFunc([]string{one.texts(o.at)[6], one.notes()}, func(s string) bool { return s == "" }), "; "), one.overdue(o.at))
				for _, name := range slices.Sorted(maps.Keys(s.workers)) {
					r := health.Of(s.workers[name])
					fmt.Fprintf(&text, "health: %s %s: %s\n", name, r.State, r.Reason)
				}
				after := s.told()
				for _, name := range slices.Sorted(maps.Keys(after)) {
					grew := after[name] - before[name]
					if grew != 0 && !slices.ContainsFunc(routine, func(r string) bool { return strings.HasPrefix(name, r) }) {
						fmt.Fprintf(&text, "metric: %s\n", strings.TrimSuffix(name, "_total"))
					}
				}
				text.WriteString("\n")
				cancel()
				for _, stop := range s.stop {
					stop()
				}
			})
		})
	}
	golden.Compare(t, "silence.text", measured.ReplaceAllString(text.String(), "…"))
}
