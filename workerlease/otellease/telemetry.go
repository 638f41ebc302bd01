package otellease

import (
	"context"
	"fmt"

	"github.com/benbjohnson/clock"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/tally"
)

// scope names the source of metrics and spans.
const scope = "github.com/slotlease/slotlease/workerlease/otellease"

// DefaultWorkerTypes is the default of Options.WorkerTypes.
const DefaultWorkerTypes = tally.DefaultTypes

// Options of New. The zero value is ready for use.
type Options struct {
	// MeterProvider gets the metrics. Default: otel.GetMeterProvider().
	MeterProvider metric.MeterProvider
	// TracerProvider gets the spans. Default: otel.GetTracerProvider().
	TracerProvider trace.TracerProvider
	// WorkerTypes is how many worker types have series of their own: those that are seen first. All others
	// are counted together, as worker_type="_other". Default: DefaultWorkerTypes.
	WorkerTypes int
	// Clock is the machine's clock, which metrics and spans are measured by. Default:
	// workerlease.NewSystemClock.
	Clock clock.Clock
}

// Telemetry observes clients. It is safe for concurrent use.
type Telemetry struct {
	meters *meters
	spans  *spans
}

var _ event.Observer = (*Telemetry)(nil)

// New returns an observer that measures and traces. An error is that of the meter provider, or says
// which option makes no sense.
func New(o Options) (*Telemetry, error) {
	if o.WorkerTypes < 0 {
		return nil, fmt.Errorf("otellease: WorkerTypes is %d: it must not be negative", o.WorkerTypes)
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.Clock == nil {
		o.Clock = workerlease.NewSystemClock()
	}
	version := workerlease.Version()
	m, err := newMeters(o.MeterProvider.Meter(scope, metric.WithInstrumentationVersion(version)), o)
	if err != nil {
		return nil, fmt.Errorf("otellease: %w", err)
	}
	return &Telemetry{meters: m, spans: newSpans(o.TracerProvider.Tracer(scope, trace.WithInstrumentationVersion(version)), o.Clock)}, nil
}

// Observe takes in an event. It is called by clients.
func (t *Telemetry) Observe(e event.Event) {
	t.meters.tally.Observe(e)
	t.spans.observe(e)
}

// Context returns ctx with the span of a lease, so that spans that are begun with it are its children.
// Call it with the context and the lease of a task or of LeaseAllocated. For a lease that has ended it returns ctx.
func (t *Telemetry) Context(ctx context.Context, l workerlease.Lease) context.Context {
	return t.spans.context(ctx, l)
}

// Unregister ends the metrics: no worker is asked any more. Spans go on.
func (t *Telemetry) Unregister() error { return t.meters.registration.Unregister() }
