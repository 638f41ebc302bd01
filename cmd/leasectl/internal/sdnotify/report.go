package sdnotify

import (
	"fmt"
	"sync"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/health"
)

const (
	// look is how often a worker is looked at.
	look = 500 * time.Millisecond
	// stuckAfter is how long a worker whose slot is over may do nothing before it counts as stuck. Each
	// operation on a store ends sooner, and is a sign of life whatever comes of it.
	stuckAfter = time.Minute
)

// Reporter tells the service manager about a worker. Its methods may be called on several goroutines.
type Reporter struct {
	socket  *Socket
	scrub   func(string) string
	stuck   time.Duration
	stop    chan struct{}
	running sync.WaitGroup
	ending  sync.Once
	closing sync.Once
}

// NewReporter returns a reporter that takes secrets out of texts by scrub. It says nothing yet.
func NewReporter(s *Socket, scrub func(string) string) *Reporter {
	return &Reporter{socket: s, scrub: scrub, stuck: stuckAfter, stop: make(chan struct{})}
}

// Report begins to tell what a worker does, until Close is called.
func (r *Reporter) Report(w health.Worker) {
	r.running.Go(func() {
		every := r.socket.watchdog / 2
		t := time.NewTicker(tick(every))
		defer t.Stop()
		var told telling
		for {
			for _, line := range told.next(w, time.Now(), every, r.stuck) {
				r.socket.send(r.scrub(line))
			}
			select {
			case <-r.stop:
				return
			case <-t.C:
			}
		}
	})
}

// tick is how often to look, where signs of life are due so often, or 0: never.
func tick(every time.Duration) time.Duration {
	if every == 0 {
		return look
	}
	return max(min(look, every), time.Millisecond)
}

// Stopping tells that the worker stops.
func (r *Reporter) Stopping() { r.ending.Do(func() { r.socket.send("STOPPING=1") }) }

// Close tells that the worker has stopped, if it wasn't told before, and hangs up.
func (r *Reporter) Close() {
	r.closing.Do(func() {
		r.Stopping()
		close(r.stop)
		r.running.Wait()
		_ = r.socket.conn.Close()
	})
}

// telling is what was told.
type telling struct {
	ready  bool
	status string
	alive  time.Time // the newest sign of life
	pulse  pulse
}

// next is what is to be told now. A sign of life is due every so often, or never if that is 0.
func (t *telling) next(w health.Worker, now time.Time, every, stuck time.Duration) (lines []string) {
	s := w.Status()
	if !t.ready && !s.StoreTime.IsZero() {
		t.ready = true
		lines = append(lines, "READY=1")
	}
	if text := display.Line(text(w, s)); text != t.status {
		t.status = text
		lines = append(lines, "STATUS="+text)
	}
	// The ticker may be a little early.
	if alive := t.pulse.beats(s, now, stuck); alive && every > 0 && now.Sub(t.alive) >= every-every/8 {
		t.alive = now
		lines = append(lines, "WATCHDOG=1")
	}
	return lines
}

// text is what a worker does, in a line.
func text(w health.Worker, s workerlease.Status) string {
	h, held := w.Holder()
	switch {
	case !s.Healthy():
		return health.Of(w).Reason
	case s.Holding:
		return fmt.Sprintf("holds slot %s until %s", display.Clock(s.Lease.Slot.Start), display.Clock(s.Lease.Expiry))
	case held:
		return fmt.Sprintf("standby, held by %q until %s", h.InstanceID, display.Clock(h.Until))
	case !s.Won.IsZero():
		return "has won slot " + display.Clock(s.Won.Start)
	}
	if s.Contending.IsZero() {
		return "begins"
	}
	return "waits for slot " + display.Clock(s.Contending.Start)
}

// pulse shows whether a worker is alive, rather than its process alone.
type pulse struct {
	last workerlease.Status
	at   time.Time // of the newest change that only a worker that is alive makes
}

// beats reports that a worker is alive: that its code doesn't overrun and, if the slot that it
// contends for is over, or if the store has never answered, that it has done something of late.
func (p *pulse) beats(s workerlease.Status, now time.Time, stuck time.Duration) bool {
	l := p.last
	if p.at.IsZero() || s.Contending != l.Contending || s.Failures != l.Failures || s.SampleAge < l.SampleAge ||
		s.Holding != l.Holding || s.Allocated != l.Allocated || s.Lost != l.Lost || s.Missed != l.Missed {
		p.at = now
	}
	p.last = s
	due := s.StoreTime.IsZero() || s.StoreTime.After(s.Contending.End.Add(stuck))
	return !s.Stopped && !s.Overrunning && (!due || now.Sub(p.at) < stuck)
}
