package otellease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/otellease"
)

// lasts reports a span that doesn't begin and end when it should, with half a second to spare.
func lasts(t *testing.T, s sdktrace.ReadOnlySpan, from, to time.Duration) {
	t.Helper()
	begun, ended := s.StartTime().Sub(t0), s.EndTime().Sub(t0)
	if (begun-from).Abs() > 500*time.Millisecond || (ended-to).Abs() > 500*time.Millisecond {
		t.Errorf("the span %q lasts from %v to %v, want from %v to %v", s.Name(), begun, ended, from, to)
	}
}

func TestALeaseIsASpanWithALinkToTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		begin(t, b, memory.New(memory.Options{}), workerlease.Options{}, work)
		at(3*time.Minute + 30*time.Second)
		spans := b.spans.Ended()
		if len(spans) != 2 || len(b.spans.Started()) != 3 {
			t.Fatalf("%d spans have ended and %d begun, want 2 and 3", len(spans), len(b.spans.Started()))
		}
		for i, s := range spans {
			minute := time.Duration(i+1) * time.Minute
			lasts(t, s, minute, minute+time.Minute)
			if s.Name() != "lease job" || s.Status().Code != codes.Unset || s.Parent().IsValid() {
				t.Errorf("the span %q has status %v and parent %v", s.Name(), s.Status(), s.Parent())
			}
			a := attributesOf(s)
			if got := a["slotlease.token"].AsInt64(); got != t0.Add(minute).UnixMilli() {
				t.Errorf("token %d, want %d", got, t0.Add(minute).UnixMilli())
			}
			for key, want := range map[string]string{
				"worker_type": "job", "instance_id": "me", "reason": "window ended",
				"slot.start": fmt.Sprintf("2000-01-01T00:%02d:00.000Z", i+1), "slot.end": fmt.Sprintf("2000-01-01T00:%02d:00.000Z", i+2),
			} {
				if got := a["slotlease."+key].AsString(); got != want {
					t.Errorf("slotlease.%s = %q, want %q", key, got, want)
				}
			}
			if d := a["slotlease.delay"].AsFloat64(); d <= 0 || d > .1 {
				t.Errorf("delay %v s, want a few milliseconds", d)
			}
		}
		if links := spans[0].Links(); len(links) != 0 {
			t.Errorf("the first lease links to %v", links)
		}
		if links := spans[1].Links(); len(links) != 1 || !links[0].SpanContext.Equal(spans[0].SpanContext()) {
			t.Errorf("the second lease links to %v, want the first", links)
		}
	})
}

func TestTheStatusOfASpanIsWhatBecameOfTheLease(t *testing.T) {
	tests := []struct {
		name    string
		options workerlease.Options
		task    workerlease.Task
		fault   func(*faultstore.Ledger) // at 90 s
		status  codes.Code
		says    string
		reason  string
		ends    time.Duration
	}{
		{"done", workerlease.Options{Job: &workerlease.Job{}}, func(context.Context, workerlease.Lease) error {
			time.Sleep(20 * time.Second)
			return nil
		}, nil, codes.Unset, "", "done", 80 * time.Second},
		{"failed", workerlease.Options{}, func(context.Context, workerlease.Lease) error {
			time.Sleep(20 * time.Second)
			return errors.New("no paper " + strings.Repeat("x", 1000))
		}, nil, codes.Error, "no paper", "failed", 80 * time.Second},
		{"panicked", workerlease.Options{}, func(context.Context, workerlease.Lease) error {
			time.Sleep(20 * time.Second)
			panic("no ink")
		}, nil, codes.Error, "no ink", "failed", 80 * time.Second},
		{"reported", workerlease.Options{}, func(ctx context.Context, l workerlease.Lease) error {
			l.Failed()
			return work(ctx, l)
		}, nil, codes.Error, "reported", "window ended", 2 * time.Minute},
		{"failed late", workerlease.Options{}, func(ctx context.Context, _ workerlease.Lease) error {
			<-ctx.Done()
			return errors.New("half done")
		}, nil, codes.Error, "half done", "window ended", 2 * time.Minute},
		{"overrun", workerlease.Options{}, func(context.Context, workerlease.Lease) error {
			time.Sleep(100 * time.Second)
			return nil
		}, nil, codes.Error, "has not returned", "window ended", 2 * time.Minute},
		{"lost", workerlease.Options{FailoverWithin: 20 * time.Second}, work, func(l *faultstore.Ledger) {
			l.Break(faultstore.OtherServer("other", time.Hour))
		}, codes.Error, "lost: clock jumped", "clock jumped", 95 * time.Second},
		{"stalled", workerlease.Options{ProgressWithin: 15 * time.Second}, work, nil, codes.Error, "no progress", "no progress", 75 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				link := faultstore.New(memory.New(memory.Options{}), faultstore.Options{})
				begin(t, b, link, test.options, test.task)
				if test.fault != nil {
					at(90 * time.Second)
					test.fault(link)
				}
				at(2*time.Minute + 50*time.Second)
				spans := b.spans.Ended()
				if len(spans) == 0 {
					t.Fatal("no span has ended")
				}
				s := spans[0]
				if got := s.Status(); got.Code != test.status || !strings.Contains(got.Description, test.says) || len(got.Description) > 300 {
					t.Errorf("status %v, want %v: … %s", got, test.status, test.says)
				}
				if got := attributesOf(s)["slotlease.reason"].AsString(); got != test.reason {
					t.Errorf("reason %q, want %q", got, test.reason)
				}
				if ended := s.EndTime().Sub(t0); test.name == "lost" {
					if ended > test.ends+20*time.Second {
						t.Errorf("ended at %v", ended)
					}
				} else {
					lasts(t, s, time.Minute, test.ends)
				}
			})
		})
	}
}

func TestSpansOfTheTaskAreChildrenOfItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var over workerlease.Lease
		begin(t, b, memory.New(memory.Options{}), workerlease.Options{}, func(ctx context.Context, l workerlease.Lease) error {
			_, own := b.traces.Tracer("test").Start(b.Context(ctx, l), "export")
			time.Sleep(time.Second)
			own.End()
			over = l
			return work(ctx, l)
		})
		at(2*time.Minute + 30*time.Second)
		spans := b.spans.Ended() // export, lease, export
		if len(spans) != 3 || len(b.spans.Started()) != 4 {
			t.Fatalf("%d spans have ended, want 3, and a lease begun", len(spans))
		}
		if !spans[0].Parent().Equal(spans[1].SpanContext()) {
			t.Errorf("the parent of %q is %v, want that of %q", spans[0].Name(), spans[0].Parent(), spans[1].Name())
		}
		at(3*time.Minute - 100*time.Millisecond)
		if ctx := b.Context(t.Context(), over); ctx != t.Context() {
			t.Error("a lease that has ended gives a context of its own")
		}
	})
}

func TestALeaseThatGoesOnIsOneSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		w := begin(t, b, memory.New(memory.Options{}), workerlease.Options{Continuous: true}, work)
		at(5*time.Minute + 30*time.Second)
		end(w)
		spans := b.spans.Ended()
		if len(spans) != 1 {
			t.Fatalf("%d spans, want one", len(spans))
		}
		lasts(t, spans[0], time.Minute, 5*time.Minute+30*time.Second)
		if n := attributesOf(spans[0])["slotlease.extensions"].AsInt64(); n != 4 {
			t.Errorf("%d extensions, want 4", n)
		}
		if e := spans[0].Events(); len(e) > 1 {
			t.Errorf("%d events of a span that may last for days: %v", len(e), e)
		}
	})
}

func TestWorkersThatHaveEndedAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i := range 100 {
			w := begin(t, b, memory.New(memory.Options{}), workerlease.Options{InstanceID: fmt.Sprint(i)}, work)
			synctest.Wait()
			end(w)
		}
		if n := otellease.Trails(b.Telemetry); n > 17 {
			t.Errorf("something is kept of %d of 100 workers that have ended, want 17 at most", n)
		}
	})
}
