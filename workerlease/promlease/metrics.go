package promlease

import (
	"fmt"

	"github.com/benbjohnson/clock"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/tally"
)

// DefaultWorkerTypes is the default of Options.WorkerTypes.
const DefaultWorkerTypes = tally.DefaultTypes

// Options of New. The zero value is ready for use.
type Options struct {
	// WorkerTypes is how many worker types have series of their own: those that are seen first. All others
	// are counted together, as worker_type="_other", where gauges say what is so for any of them. Default:
	// DefaultWorkerTypes.
	WorkerTypes int
	// Clock is the machine's clock, which metrics of time are measured by. Default:
	// workerlease.NewSystemClock.
	Clock clock.Clock
}

// Metrics observe clients, and are collected by a registry. They are safe for concurrent use, and need no
// closing.
type Metrics struct {
	tally *tally.Tally
	descs map[*tally.Instrument]*prometheus.Desc
}

var (
	_ event.Observer       = (*Metrics)(nil)
	_ prometheus.Collector = (*Metrics)(nil)
)

// New returns metrics, and registers them with r; with nil it leaves that to the caller. An error wraps
// that of r, such as prometheus.AlreadyRegisteredError if r has such metrics: for two sets, wrap r by
// prometheus.WrapRegistererWith with a label of its own for each. It is also returned for options that make no sense.
func New(r prometheus.Registerer, o Options) (*Metrics, error) {
	if o.WorkerTypes < 0 {
		return nil, fmt.Errorf("promlease: WorkerTypes is %d: it must not be negative", o.WorkerTypes)
	}
	m := &Metrics{
		tally: tally.New(tally.Options{Clock: o.Clock, Types: o.WorkerTypes}),
		descs: map[*tally.Instrument]*prometheus.Desc{},
	}
	for _, in := range tally.Instruments() {
		labels := []string{tally.WorkerType}
		if in.Label != "" {
			labels = append(labels, in.Label)
		}
		m.descs[in] = prometheus.NewDesc(in.PrometheusName(), in.Help, labels, nil)
	}
	if r == nil {
		return m, nil
	}
	if err := r.Register(m); err != nil {
		return nil, fmt.Errorf("promlease: register metrics: %w", err)
	}
	return m, nil
}

// Observe counts an event. It is called by clients.
func (m *Metrics) Observe(e event.Event) { m.tally.Observe(e) }

// Describe is called by a registry.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, in := range tally.Instruments() {
		to <- m.descs[in]
	}
}

// Collect is called by a registry, at each scrape.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, r := range m.tally.Read() {
		desc, labels := m.descs[r.Instrument], []string{r.WorkerType}
		if r.Label != "" {
			labels = append(labels, r.Value)
		}
		switch r.Kind {
		case tally.Counter:
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, r.X, labels...)
		case tally.Gauge:
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, r.X, labels...)
		case tally.Histogram:
			to <- prometheus.MustNewConstHistogram(desc, r.Distribution.Count, r.Distribution.Sum, cumulated(r), labels...)
		}
	}
}

// cumulated are the buckets of a histogram in Prometheus' form: each has those before it, too.
func cumulated(r tally.Reading) map[float64]uint64 {
	buckets, sum := map[float64]uint64{}, uint64(0)
	for i, n := range r.Distribution.Buckets {
		sum += n
		buckets[r.Bounds[i]] = sum
	}
	return buckets
}
