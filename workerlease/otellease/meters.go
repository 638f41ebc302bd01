package otellease

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/slotlease/slotlease/workerlease/internal/tally"
)

// meters show what is counted to a meter provider: counters and gauges whenever it asks, and
// observations of histograms as they come.
type meters struct {
	tally        *tally.Tally
	registration metric.Registration
	observables  map[*tally.Instrument]metric.Float64Observable
	histograms   map[*tally.Instrument]metric.Float64Histogram

	mu   sync.Mutex
	sets map[[3]string]metric.MeasurementOption // by worker type, label and value
}

func newMeters(meter metric.Meter, o Options) (*meters, error) {
	m := &meters{
		observables: map[*tally.Instrument]metric.Float64Observable{},
		histograms:  map[*tally.Instrument]metric.Float64Histogram{},
		sets:        map[[3]string]metric.MeasurementOption{},
	}
	var asked []metric.Observable
	for _, in := range tally.Instruments() {
		var err error
		name, unit, help := in.FullName(), metric.WithUnit(in.Unit), metric.WithDescription(in.Help)
		switch in.Kind {
		case tally.Counter:
			m.observables[in], err = meter.Float64ObservableCounter(name, unit, help)
		case tally.Gauge:
			m.observables[in], err = meter.Float64ObservableGauge(name, unit, help)
		case tally.Histogram:
			m.histograms[in], err = meter.Float64Histogram(name, unit, help, metric.WithExplicitBucketBoundaries(in.Bounds...))
		}
		if err != nil {
			return nil, err
		}
		if o := m.observables[in]; o != nil {
			asked = append(asked, o)
		}
	}
	m.tally = tally.New(tally.Options{Clock: o.Clock, Types: o.WorkerTypes, Record: m.record})
	var err error
	m.registration, err = meter.RegisterCallback(m.show, asked...)
	return m, err
}

// record is an observation of a histogram.
func (m *meters) record(in *tally.Instrument, workerType string, x float64) {
	m.histograms[in].Record(context.Background(), x, m.set(workerType, "", ""))
}

// show is called whenever metrics are collected.
func (m *meters) show(_ context.Context, to metric.Observer) error {
	for _, r := range m.tally.Read() {
		if o := m.observables[r.Instrument]; o != nil {
			to.ObserveFloat64(o, r.X, m.set(r.WorkerType, r.Label, r.Value))
		}
	}
	return nil
}

// set is the attributes of a value. There are as many as the values of labels allow.
func (m *meters) set(workerType, label, value string) metric.MeasurementOption {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [3]string{workerType, label, value}
	if s, ok := m.sets[key]; ok {
		return s
	}
	attributes := []attribute.KeyValue{attribute.String(tally.WorkerType, workerType)}
	if label != "" {
		attributes = append(attributes, attribute.String(label, value))
	}
	s := metric.WithAttributeSet(attribute.NewSet(attributes...))
	m.sets[key] = s
	return s
}
