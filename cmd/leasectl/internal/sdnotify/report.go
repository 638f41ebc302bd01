package sdnotify

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/health"
)

// look is how often a worker is looked at.
const look = 500 * time.Millisecond

// Reporter tells the service manager about a worker. Its methods may be called on several goroutines.
type Reporter struct {
	socket  *Socket
	scrub   func(string) string
	stop    chan struct{}
	running sync.WaitGroup
	ending  sync.Once
	ends    atomic.Bool
	closing sync.Once
}

// NewReporter returns a reporter that takes secrets out of texts by scrub. It says nothing yet.
func NewReporter(s *Socket, scrub func(string) string) *Reporter {
	return &Reporter{socket: s, scrub: scrub, stop: make(chan struct{})}
}

// Report begins to tell what a worker does, until Close is called.
func (r *Reporter) Report(w health.Worker) {
	r.ReportAll(func() []health.Worker { return []health.Worker{w} })
}

// ReportAll is Report of several workers. all is called at each look.
func (r *Reporter) ReportAll(all func() []health.Worker) {
	r.running.Go(func() {
		every := r.socket.watchdog / 2
		t := time.NewTicker(tick(every))
		defer t.Stop()
		var told telling
		for {
			lines := told.next(all(), time.Now(), every)
			if r.ends.Load() && told.lives {
				lines = append(lines, more)
			}
			for _, line := range lines {
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

// more asks, at each look while the worker stops, for time beyond what the service manager gives a stop: a command may have a
// longer grace. One that is stuck asks for none.
const more = "EXTEND_TIMEOUT_USEC=15000000"

// Stopping tells that the worker stops.
func (r *Reporter) Stopping() {
	r.ending.Do(func() {
		r.socket.send("STOPPING=1")
		r.ends.Store(true)
	})
}

// Reloading tells that the configuration is read anew, until done is called.
func (r *Reporter) Reloading() (done func()) {
	r.socket.send("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(monotonic().Microseconds(), 10))
	return func() { r.socket.send("READY=1") }
}

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
	lives  bool      // one of the workers does
}

// next is what is to be told now. A sign of life is due every so often, or never if that is 0.
func (t *telling) next(all []health.Worker, now time.Time, every time.Duration) (lines []string) {
	alive, known := false, false
	for _, w := range all {
		s := w.Status()
		alive, known = alive || !s.Stopped && s.Alive(), known || !s.StoreTime.IsZero()
	}
	if !t.ready && known {
		t.ready = true
		lines = append(lines, "READY=1")
	}
	if text := display.Line(textOf(all)); text != t.status {
		t.status = text
		lines = append(lines, "STATUS="+text)
	}
	t.lives = alive
	// The ticker may be a little early.
	if alive && every > 0 && now.Sub(t.alive) >= every-every/8 {
		t.alive = now
		lines = append(lines, "WATCHDOG=1")
	}
	return lines
}

// textOf is what workers do, in a line: of several, the first that is not well, or which of them run.
func textOf(all []health.Worker) string {
	if len(all) == 1 {
		return text(all[0], all[0].Status())
	}
	var running []string
	for _, w := range all {
		switch s := w.Status(); {
		case !s.Healthy():
			return s.WorkerType + ": " + health.Of(w).Reason
		case s.Running:
			running = append(running, s.WorkerType)
		}
	}
	if len(running) == 0 {
		return fmt.Sprintf("%d jobs", len(all))
	}
	return fmt.Sprintf("%d jobs, of which %d run: %s", len(all), len(running), strings.Join(running, ", "))
}

// text is what a worker does, in a line.
func text(w health.Worker, s workerlease.Status) string {
	h, held := w.Holder()
	switch {
	case !s.Healthy():
		return health.Of(w).Reason
	case s.Holding:
		return fmt.Sprintf("holds slot %s until %s", display.When(s.Lease.Slot.Start, s.StoreTime), display.When(s.Lease.Expiry, s.StoreTime))
	case s.Paused != "":
		return "claims nothing: " + s.Paused
	case held:
		return fmt.Sprintf("standby, held by %q until %s", h.InstanceID, display.When(h.Until, s.StoreTime))
	case !s.Won.IsZero():
		return "has won slot " + display.When(s.Won.Start, s.StoreTime)
	}
	if s.Contending.IsZero() {
		return "begins"
	}
	return "waits for slot " + display.When(s.Contending.Start, s.StoreTime)
}
