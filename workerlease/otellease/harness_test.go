package otellease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/otellease"
)

// t0 is when bubbles begin, which is a boundary.
var t0 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// at waits until a time after the bubble began, and until all that happens then has happened.
func at(d time.Duration) {
	time.Sleep(d - time.Since(t0))
	synctest.Wait()
}

// bench is a telemetry, and what it exports.
type bench struct {
	*otellease.Telemetry

	reader *sdkmetric.ManualReader
	traces *sdktrace.TracerProvider
	spans  *tracetest.SpanRecorder
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	b.traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.spans))
	var err error
	b.Telemetry, err = otellease.New(otellease.Options{
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader)), TracerProvider: b.traces,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// begin starts a worker with slots of a minute that runs a task, and is stopped with the test.
func begin(t *testing.T, o event.Observer, ledger store.Ledger, options workerlease.Options, task workerlease.Task) *workerlease.WorkerLease {
	t.Helper()
	options.WorkerType, options.LeaseInterval = "job", time.Minute
	if options.InstanceID == "" {
		options.InstanceID = "me"
	}
	options.WaitForBoundary = true // Times are those of whole slots.
	w, err := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: o}).StartTask(t.Context(), options, task)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(w) })
	return w
}

func end(w *workerlease.WorkerLease) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	_ = w.StopLeasing(ctx)
}

// work works until its context ends.
func work(ctx context.Context, _ workerlease.Lease) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// attributesOf are the attributes of a span, by key without the prefix.
func attributesOf(s sdktrace.ReadOnlySpan) map[string]attribute.Value {
	out := map[string]attribute.Value{}
	for _, a := range s.Attributes() {
		out[string(a.Key)] = a.Value
	}
	return out
}
