package otellease

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// spans are those of leases that have begun and not ended.
type spans struct {
	tracer trace.Tracer
	clock  clock.Clock

	mu      sync.Mutex
	trails  map[event.Worker]*trail
	sweepAt int // how many trails there are when those of workers that have ended are looked for
}

// trail is what is known of a worker.
type trail struct {
	mu     sync.Mutex
	worker *workerlease.WorkerLease // nil: not known
	last   trace.SpanContext        // of its newest lease that has ended
	open   map[int64]*span          // by token
}

// span is that of a lease.
type span struct {
	trace.Span

	ended      time.Time // when the lease ended; zero: it hasn't
	extensions int
}

func newSpans(t trace.Tracer, c clock.Clock) *spans {
	return &spans{tracer: t, clock: c, trails: map[event.Worker]*trail{}, sweepAt: 16}
}

// trail returns that of a worker.
func (s *spans) trail(of event.Worker) *trail {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.trails[of]
	if t != nil {
		return t
	}
	if len(s.trails) >= s.sweepAt {
		for w, t := range s.trails {
			if t.over() {
				delete(s.trails, w)
			}
		}
		s.sweepAt = max(16, 2*len(s.trails))
	}
	t = &trail{open: map[int64]*span{}}
	s.trails[of] = t
	return t
}

// over reports that nothing more will come of a worker. It never waits.
func (t *trail) over() bool {
	if !t.mu.TryLock() {
		return false
	}
	defer t.mu.Unlock()
	if t.worker == nil || len(t.open) > 0 {
		return false
	}
	select {
	case <-t.worker.Done():
		return true
	default:
		return false
	}
}

// context returns ctx with the span of a lease.
func (s *spans) context(ctx context.Context, l workerlease.Lease) context.Context {
	t := s.trail(event.Worker{WorkerType: l.WorkerType, InstanceID: l.InstanceID})
	t.mu.Lock()
	defer t.mu.Unlock()
	if !l.Valid() {
		return ctx
	}
	seen := event.Lease{WorkerType: l.WorkerType, InstanceID: l.InstanceID, Group: l.Group, Slot: l.Slot, Token: l.Token, Attempt: l.Attempt}
	return trace.ContextWithSpan(ctx, s.begin(t, seen).Span)
}

// begin returns the span of a lease, which it begins if the code under the lease has not been faster. The caller
// holds the trail's mutex.
func (s *spans) begin(t *trail, l event.Lease) *span {
	if p := t.open[l.Token]; p != nil {
		return p
	}
	attributes := []attribute.KeyValue{
		text("worker_type", l.WorkerType), text("instance_id", l.InstanceID), attribute.Int64(prefix+"token", l.Token),
		text("slot.start", store.Format(l.Slot.Start)), text("slot.end", store.Format(l.Slot.End)),
	}
	if l.Group != "" {
		attributes = append(attributes, text("group", l.Group))
	}
	if l.Attempt > 0 {
		attributes = append(attributes, attribute.Int(prefix+"attempt", l.Attempt))
	}
	o := []trace.SpanStartOption{trace.WithTimestamp(s.clock.Now()), trace.WithAttributes(attributes...)}
	if t.last.IsValid() {
		o = append(o, trace.WithLinks(trace.Link{SpanContext: t.last}))
	}
	_, begun := s.tracer.Start(context.Background(), "lease "+l.WorkerType, o...)
	p := &span{Span: begun}
	t.open[l.Token] = p
	return p
}

// observe takes in an event. Most are none of a lease's.
func (s *spans) observe(e event.Event) {
	switch e.(type) {
	case event.Started, event.Allocated, event.Extended, event.Expired, event.TaskSucceeded,
		event.TaskFailed, event.Faltered, event.Panic, event.Overrun, event.Returned:
	default:
		return
	}
	now, t := s.clock.Now(), s.trail(e.Of())
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := e.(type) {
	case event.Started:
		t.worker, _ = e.Self.(*workerlease.WorkerLease)
	case event.Allocated:
		s.begin(t, e.Lease).SetAttributes(attribute.Float64(prefix+"delay", max(e.Late, 0).Seconds()))
	case event.Returned:
		t.end(e.Lease.Token)
	case event.Panic:
		for _, p := range t.open { // One, but for a group whose members have one name.
			p.fail(e.Err, now)
		}
	case event.Overrun:
		t.overrun(now)
	case event.Extended:
		t.at(e.Lease).extensions++
	case event.Expired:
		t.at(e.Lease).expire(e.Why, now)
	case event.TaskSucceeded:
		t.at(e.Lease).AddEvent("task succeeded", trace.WithTimestamp(now))
	case event.TaskFailed:
		t.at(e.Lease).fail(e.Err, now)
	case event.Faltered:
		t.at(e.Lease).fail(nil, now)
	}
}

// none is the span of a lease that has none, or none any more. What is said of it is lost.
func none() *span { return &span{Span: trace.SpanFromContext(context.Background())} }

// at returns the span of a lease.
func (t *trail) at(l event.Lease) *span {
	if p := t.open[l.Token]; p != nil {
		return p
	}
	return none()
}

// fail notes that the code of a lease has failed.
func (p *span) fail(err error, now time.Time) {
	why := "the code reported that it failed"
	if err != nil {
		why = short(err.Error())
		p.AddEvent("exception", trace.WithTimestamp(now), trace.WithAttributes(attribute.String("exception.message", why)))
	}
	p.SetStatus(codes.Error, why)
}

// overrun ends the spans of leases that are over, though the code under them has not returned: it may never.
func (t *trail) overrun(now time.Time) {
	for token, p := range t.open {
		if p.ended.IsZero() {
			continue
		}
		p.AddEvent("overrun", trace.WithTimestamp(now))
		p.SetStatus(codes.Error, "the code has not returned, and the lease is over")
		t.end(token)
	}
}

// expire notes that the lease has ended.
func (p *span) expire(why workerlease.Reason, now time.Time) {
	p.ended = now
	p.SetAttributes(text("reason", string(why)), attribute.Int(prefix+"extensions", p.extensions))
	switch why {
	case workerlease.WindowEnded, workerlease.Stopped, workerlease.Done, workerlease.Ineligible:
	case workerlease.Failed, workerlease.Panicked: // The status says more already.
	default:
		p.SetStatus(codes.Error, "the lease was lost: "+string(why))
	}
}

// end ends the span of a lease, as of when the lease ended.
func (t *trail) end(token int64) {
	p := t.open[token]
	if p == nil {
		return
	}
	delete(t.open, token)
	t.last = p.SpanContext()
	p.End(trace.WithTimestamp(p.ended))
}

// prefix begins the names of attributes of spans.
const prefix = "slotlease."

// longest is how many bytes of a text an attribute has at most.
const longest = 256

func text(key, value string) attribute.KeyValue { return attribute.String(prefix+key, short(value)) }

func short(value string) string {
	return strings.ToValidUTF8(value[:min(len(value), longest)], "")
}
