package promlease_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/promlease"
)

func metrics(t *testing.T, o promlease.Options) (*promlease.Metrics, *prometheus.Registry) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	m, err := promlease.New(r, o)
	must(t, err)
	return m, r
}

// series are the values of a scrape, by name and labels.
func series(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	must(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				out[name] = m.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				out[name] = m.GetGauge().GetValue()
			case dto.MetricType_HISTOGRAM:
				out[name] = float64(m.GetHistogram().GetSampleCount())
			default:
				t.Errorf("%s is a %v", name, f.GetType())
			}
		}
	}
	return out
}

// start starts a worker with slots of a minute, which is stopped with the test.
func start(t *testing.T, ledger *memory.Ledger, m *promlease.Metrics, name string, priority int) {
	t.Helper()
	w, err := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: m}).StartLeasing(t.Context(),
		workerlease.Options{WorkerType: "job", InstanceID: name, Priority: priority, LeaseInterval: time.Minute},
		workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) { <-ctx.Done() }})
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = w.StopLeasing(ctx)
	})
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAScrapeShowsTheCourseOfLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		winner, ofWinner := metrics(t, promlease.Options{})
		loser, ofLoser := metrics(t, promlease.Options{})
		start(t, ledger, winner, "winner", 0)
		start(t, ledger.Handle(), loser, "loser", 1)
		time.Sleep(150 * time.Second)
		synctest.Wait()
		const of = "{worker_type=job}"
		check := func(got map[string]float64, want map[string]float64) {
			t.Helper()
			for name, x := range want {
				if g, ok := got["slotlease_"+name]; !ok || g != x {
					t.Errorf("slotlease_%s = %v (%v), want %v", name, g, ok, x)
				}
			}
		}
		begun := float64(time.Date(2000, 1, 1, 0, 2, 0, 0, time.UTC).UnixMilli())
		check(series(t, ofWinner), map[string]float64{
			"workers" + of: 1, "lease_holding" + of: 1, "holder_known" + of: 1, "token" + of: begun,
			"slots_won_total" + of: 2, "slots_lost_total" + of: 0, "leases_allocated_total" + of: 2,
			"leases_expired_total{reason=window_ended,worker_type=job}": 1, "leases_expired_total{reason=stopped,worker_type=job}": 0,
			"slot_delay_seconds" + of: 2, "claim_early_seconds" + of: 2, "worker_healthy" + of: 1, "worker_priority" + of: 0,
			"store_operations_total{operation=append,worker_type=job}": 2, "store_unknown_outcomes_total" + of: 0,
		})
		check(series(t, ofLoser), map[string]float64{
			"workers" + of: 1, "lease_holding" + of: 0, "holder_known" + of: 1, "token" + of: begun, "lease_held_seconds_total" + of: 0,
			"slots_won_total" + of: 0, "slots_lost_total" + of: 2, "leases_allocated_total" + of: 0, "worker_priority" + of: 1,
			"store_operations_total{operation=append,worker_type=job}": 0, "store_operations_total{operation=tail,worker_type=job}": 3,
		})
		if held := series(t, ofWinner)["slotlease_lease_held_seconds_total"+of]; held < 89 || held > 90 {
			t.Errorf("held for %v s after 90 s, want that but for the margin", held)
		}
	})
}

// The linter is Prometheus' own.
func TestNamesFollowTheConventionsOfPrometheus(t *testing.T) {
	m, r := metrics(t, promlease.Options{})
	m.Observe(event.Started{Worker: event.Worker{WorkerType: "job"}})
	problems, err := testutil.GatherAndLint(r)
	must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestNoLabelHasWhatIsNotBounded(t *testing.T) {
	const most, types = 3, 50
	m, r := metrics(t, promlease.Options{WorkerTypes: most})
	secret := errors.New("user:password@host")
	for i := range types {
		of := event.Worker{WorkerType: fmt.Sprint("job-", i), InstanceID: fmt.Sprint("instance-", i)}
		for _, e := range []event.Event{
			event.Started{Worker: of},
			event.StoreFailed{Worker: of, Operation: fmt.Sprint("operation ", i), Err: secret},
			event.Missed{Worker: of, Why: workerlease.Reason(fmt.Sprint("reason ", i))},
			event.TaskFailed{Worker: of, Err: secret},
		} {
			m.Observe(e)
		}
	}
	got := series(t, r)
	for name := range got {
		if strings.Contains(name, "instance") || strings.Contains(name, "password") || strings.Contains(name, "operation ") || strings.Contains(name, "reason ") {
			t.Errorf("%s has what is not bounded", name)
		}
	}
	labels := map[string]bool{}
	perType := 0
	for name := range got {
		_, rest, _ := strings.Cut(name, "worker_type=")
		labels[strings.Trim(rest, "}")] = true
		if strings.HasSuffix(rest, "job-0}") {
			perType++
		}
	}
	if want := []string{"_other", "job-0", "job-1", "job-2"}; !slices.Equal(slices.Sorted(maps.Keys(labels)), want) {
		t.Errorf("worker types %q, want %q", slices.Sorted(maps.Keys(labels)), want)
	}
	if perType > 120 {
		t.Errorf("%d series (a histogram is one here) of a worker type", perType)
	}
}

// The package documentation says how many series a worker type has.
func TestAWorkerTypeHasAsManySeriesAsIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := metrics(t, promlease.Options{})
		start(t, memory.New(memory.Options{}), m, "me", 0)
		time.Sleep(90 * time.Second)
		synctest.Wait()
		answer := httptest.NewRecorder()
		promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		if n := strings.Count(answer.Body.String(), "\nslotlease_"); n < 170 || n > 190 {
			t.Errorf("%d series, want about 180", n)
		}
	})
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	m, r := metrics(t, promlease.Options{})
	_, err := promlease.New(r, promlease.Options{})
	if _, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); !ok {
		t.Errorf("New() = %v, want an AlreadyRegisteredError", err)
	}
	if !r.Unregister(m) {
		t.Error("the metrics can't be unregistered")
	}
	r = prometheus.NewPedanticRegistry()
	for _, ledger := range []string{"a", "b"} {
		if _, err := promlease.New(prometheus.WrapRegistererWith(prometheus.Labels{"ledger": ledger}, r), promlease.Options{}); err != nil {
			t.Error(err)
		}
	}
	if _, err := promlease.New(nil, promlease.Options{}); err != nil {
		t.Error(err)
	}
	if _, err := promlease.New(nil, promlease.Options{WorkerTypes: -1}); err == nil {
		t.Error("a negative bound is accepted")
	}
}

func TestScrapesAndWorkersDontRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := metrics(t, promlease.Options{})
		ledger := memory.New(memory.Options{})
		for i := range 4 {
			start(t, ledger.Handle(), m, fmt.Sprint(i), i%2)
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 50 {
					time.Sleep(3 * time.Second)
					if _, err := r.Gather(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}
