package otellease_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/otellease"
)

func ExampleTelemetry_Context() {
	spans := tracetest.NewInMemoryExporter() // a program has another one, such as otlptracegrpc
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	telemetry, err := otellease.New(otellease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{Observer: telemetry})
	options := workerlease.Options{WorkerType: "report", FailoverWithin: 30 * time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	err = client.Run(ctx, options, func(ctx context.Context, l workerlease.Lease) error {
		_, span := otel.Tracer("example").Start(telemetry.Context(ctx, l), "make the report")
		defer span.End()
		cancel() // one report is enough
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	own, lease := spans.GetSpans()[0], spans.GetSpans()[1]
	fmt.Printf("%q is a part of %q: %t\n", own.Name, lease.Name, own.Parent.SpanID() == lease.SpanContext.SpanID())
	// Output: "make the report" is a part of "lease report": true
}
