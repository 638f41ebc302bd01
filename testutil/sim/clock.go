package sim

import (
	"context"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/boottime"
)

// lane separates the kinds of events of one process, so that no two share an instant: every
// wake-up comes at a nanosecond of its lane.
type lane int64

const (
	wakeLane lane = iota
	holdLane
	timeoutLane
	requestLane
	replyLane
	landLane
	userLane
	lifeLane
	observerLane
	userWakeLane // this and the next but one correspond to the first and the third
	watchLane
	_
	writeLane
	rollbackLane
	lookLane
	recheckLane
	lanes = 16
)

// round is the number of nanoseconds in which all lanes of all processes have their turn.
const round = 1024 * lanes

// slot is the next instant of a lane, at or after a true time.
func (p *Process) slot(at time.Duration, l lane) time.Duration {
	wait := (p.lanes + time.Duration(l) - at) % round
	if wait < 0 {
		wait += round
	}
	return at + wait
}

// hostClock is the clock of one process. It drifts, its time of day is wrong, and it stands
// still when its host does. It embeds the bubble's clock, which is true time.
type hostClock struct {
	clock.Clock
	p     *Process
	first lane                // of timers; that of WithTimeout is the next but one
	wall  time.Duration       // how wrong its time of day was at birth
	off   [lanes]atomic.Int64 // when a timer of a lane was last off
}

// plainClock is a clock without boot time.
type plainClock struct{ clock.Clock }

// Boottime drifts.
func (c *hostClock) Boottime() time.Duration {
	_, reading := c.read()
	return c.p.host.boot + reading
}

// read is true time, and the reading of the host's clock then.
func (c *hostClock) read() (at, reading time.Duration) {
	at = c.p.world.now()
	c.p.looks(at)
	return at, c.p.host.reading(at)
}

// Reads says that Boottime is that of the host, as all of its processes read it.
func (*hostClock) Reads(boottime.Machine) {}

// Monotonic is a reading that stands still while the host is suspended, as Go's own does.
func (c *hostClock) Monotonic() time.Duration {
	at, _ := c.read()
	h := c.p.host
	return h.boot + h.reading(at-h.stood(Suspend, at))
}

// wrong is how wrong the time of day is at a true time.
func (c *hostClock) wrong(at time.Duration) time.Duration {
	h := c.p.host
	if h.wall == 0 {
		return 0
	}
	r := newRand(c.p.world.o.Seed, forWall, h.worker, 1+h.steps.begun(at))
	return r.either(h.wall)
}

// Now is the time of day.
func (c *hostClock) Now() time.Time {
	at, reading := c.read()
	return c.p.world.origin.Add(reading + c.wrong(at))
}

// Since is as steady as Go's: it ignores steps of the time of day.
func (c *hostClock) Since(t time.Time) time.Duration {
	_, reading := c.read()
	return c.p.world.origin.Add(reading + c.wall).Sub(t)
}

// timerOff is how late or early a timer can be.
const timerOff = 500 * time.Millisecond

// wait is the true length of a local wait.
func (c *hostClock) wait(d time.Duration, l lane) time.Duration {
	w := c.p.world
	at := w.now()
	if w.o.Faults.TimerOff > 0 {
		r := newRand(w.o.Seed, forTimer, c.p.number, int64(at)<<4|int64(l))
		if r.chance(w.o.Faults.TimerOff) {
			// A timer that is set again at once counts once.
			if c.off[l].Swap(int64(at)) != int64(at) && !c.p.dead.Load() {
				w.tally.strike(TimerOff)
			}
			d = max(0, d+r.either(timerOff))
			c.p.health.ail(at + d + 2*timerOff)
		}
	}
	return c.p.slot(c.p.host.fires(at, d)+1, l) - at
}

// Until goes by the time of day.
func (c *hostClock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

func (c *hostClock) After(d time.Duration) <-chan time.Time { return c.Timer(d).C }

func (c *hostClock) WithDeadline(ctx context.Context, t time.Time) (context.Context, context.CancelFunc) {
	return c.WithTimeout(ctx, c.Until(t))
}

func (c *hostClock) Timer(d time.Duration) *clock.Timer {
	return c.Clock.Timer(c.wait(d, c.first+wakeLane))
}

// AfterFunc gives each kind of the engine's timers a lane, and those of user code that of its sleep.
func (c *hostClock) AfterFunc(d time.Duration, f func()) *clock.Timer {
	if c.first != wakeLane {
		return c.Clock.AfterFunc(c.wait(d, userLane), f)
	}
	l := timerLane(f)
	if l == wakeLane {
		c.p.waits(d)
	}
	return c.Clock.AfterFunc(c.wait(d, l), f)
}

// timerLanes are the lanes of the engine's timers, by what they call: a worker has one for what
// it waits for, a lease one for its end, and a client one for its watch and one for all leases.
var timerLanes = []struct {
	calls string
	lane  lane
}{
	{"workerlease.(*WorkerLease).", wakeLane},
	{"workerlease.(*activeLease).", holdLane},
	{"workerlease.(*Client).watchOn.", watchLane},
	{"workerlease.(*Client).unwatch.", watchLane},
	{"workerlease.(*Client).waitForRoster.", watchLane},
	{"workerlease.(*Client).unattend.", watchLane},
	{"workerlease.(*Client).", recheckLane},
}

// knownLanes are those of functions that have been looked up, by their code.
var knownLanes sync.Map

// timerLane is the lane of the timer that calls a function of the engine.
func timerLane(f func()) lane {
	code := reflect.ValueOf(f).Pointer()
	if l, ok := knownLanes.Load(code); ok {
		return l.(lane)
	}
	name := runtime.FuncForPC(code).Name()
	for _, t := range timerLanes {
		if strings.Contains(name, t.calls) {
			knownLanes.Store(code, t.lane)
			return t.lane
		}
	}
	panic("sim: the engine sets a timer of a kind that has no lane: " + name)
}

func (c *hostClock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	end := time.Now().Add(c.wait(d, c.first+timeoutLane))
	x := &bounded{Context: ctx, end: end}
	return x, x.stop
}

// bounded is a context with a deadline. It sets a timer only if some code waits for it, which
// is rare, because a timer costs time.
type bounded struct {
	context.Context
	end time.Time

	mu     sync.Mutex
	inner  context.Context
	cancel context.CancelFunc
}

func (c *bounded) arm() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner, c.cancel = context.WithDeadline(c.Context, c.end)
	}
	return c.inner
}

func (c *bounded) Deadline() (time.Time, bool) {
	if end, ok := c.Context.Deadline(); ok && end.Before(c.end) {
		return end, true
	}
	return c.end, true
}

func (c *bounded) Done() <-chan struct{} { return c.arm().Done() }

func (c *bounded) Err() error { return c.arm().Err() }

func (c *bounded) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner, c.cancel = context.WithCancel(c.Context)
	}
	c.cancel()
}

func (c *hostClock) Sleep(d time.Duration) { time.Sleep(c.wait(d, userLane)) }

// randomness of a process is a function of the time.
type randomness struct{ p *Process }

func (r randomness) Read(b []byte) (int, error) {
	s := newRand(r.p.world.o.Seed, forRand, r.p.number, int64(r.p.world.now()))
	for i := 0; i < len(b); i += 8 {
		x := s.next()
		for j := i; j < min(i+8, len(b)); j++ {
			b[j] = byte(x)
			x >>= 8
		}
	}
	return len(b), nil
}
