package otellease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/tally"
	"github.com/slotlease/slotlease/workerlease/otellease"
)

// key names a value: its instrument and its attributes.
func key(name, label, value string) string { return fmt.Sprintf("%s{%s=%s}", name, label, value) }

// collect returns all values and distributions that an SDK collects, and the instruments' units.
func collect(t *testing.T, b *bench) (values map[string]float64, distributions map[string]tally.Distribution, units map[string]string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := b.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	values, distributions, units = map[string]float64{}, map[string]tally.Distribution{}, map[string]string{}
	of := func(name string, set attribute.Set) string {
		label, value := "", ""
		for _, a := range set.ToSlice() {
			if a.Key != "worker_type" {
				label, value = string(a.Key), a.Value.AsString()
			}
		}
		if v, _ := set.Value("worker_type"); v.AsString() != "job" {
			t.Errorf("%s has the worker type %q, want job", name, v.AsString())
		}
		return key(name, label, value)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			units[m.Name] = m.Unit
			switch d := m.Data.(type) {
			case metricdata.Sum[float64]:
				if !d.IsMonotonic {
					t.Errorf("%s may fall", m.Name)
				}
				for _, p := range d.DataPoints {
					values[of(m.Name, p.Attributes)] = p.Value
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					values[of(m.Name, p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					distributions[of(m.Name, p.Attributes)] = tally.Distribution{Count: p.Count, Sum: p.Sum, Buckets: p.BucketCounts[:len(p.BucketCounts)-1]}
				}
			default:
				t.Errorf("%s is a %T", m.Name, d)
			}
		}
	}
	return values, distributions, units
}

func TestMetricsAreThoseThatAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		counted := tally.New(tally.Options{})
		slot := 0
		begin(t, event.Observers(b, counted), memory.New(memory.Options{}), workerlease.Options{Job: &workerlease.Job{}}, func(context.Context, workerlease.Lease) error {
			if slot++; slot == 2 {
				return errors.New("no")
			}
			time.Sleep(3 * time.Second)
			return nil
		})
		at(3*time.Minute + 90*time.Second)
		values, distributions, units := collect(t, b)
		n := 0
		for _, r := range counted.Read() {
			k := key(r.FullName(), r.Label, r.Value)
			if r.Kind == tally.Histogram {
				got, want := distributions[k], r.Distribution
				if got.Count != want.Count || got.Sum != want.Sum || want.Count > 0 && !slices.Equal(got.Buckets, want.Buckets) {
					t.Errorf("%s = %+v, want %+v", k, got, want)
				}
				continue
			}
			n++
			got, ok := values[k]
			if !ok || got != r.X {
				t.Errorf("%s = %v (%v), want %v", k, got, ok, r.X)
			}
			if units[r.FullName()] != r.Unit {
				t.Errorf("%s has the unit %q, want %q", r.FullName(), units[r.FullName()], r.Unit)
			}
		}
		if len(values) != n || n < 90 {
			t.Errorf("%d values, want the %d that were counted", len(values), n)
		}
		if values["slotlease.slots.done{=}"] != 4 || values["slotlease.tasks.failed{reason=error}"] != 1 {
			t.Errorf("slots done %v, tasks failed %v, want 4 and 1", values["slotlease.slots.done{=}"], values["slotlease.tasks.failed{reason=error}"])
		}
	})
}

func TestNothingIsAskedAfterUnregister(t *testing.T) {
	b := newBench(t)
	b.Observe(event.Conflict{Worker: event.Worker{WorkerType: "job"}})
	if values, _, _ := collect(t, b); values["slotlease.store.conflicts{=}"] != 1 {
		t.Errorf("values %v, want a conflict", values)
	}
	if err := b.Unregister(); err != nil {
		t.Fatal(err)
	}
	if values, _, _ := collect(t, b); len(values) != 0 {
		t.Errorf("%d values after Unregister", len(values))
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	if _, err := otellease.New(otellease.Options{WorkerTypes: -1}); err == nil {
		t.Error("a negative bound is accepted")
	}
}

// Without an SDK the API does nothing, which must not stop workers.
func TestWithoutAnSDKNothingIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := otellease.New(otellease.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := begin(t, o, memory.New(memory.Options{}), workerlease.Options{}, work)
		at(90 * time.Second)
		if s := w.Status(); !s.Holding {
			t.Errorf("status %v, want that it holds", s)
		}
	})
}
