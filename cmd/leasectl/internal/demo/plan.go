package demo

import (
	"io"
	"time"

	"github.com/slotlease/slotlease/slots"
)

// Options are the options of the demo.
type Options struct {
	Slots    int           // how many to show; at least 6
	Interval time.Duration // the length of the slots
	Keep     bool          // the ledger and the logs
}

// Host is what the demo runs in.
type Host struct {
	Out     io.Writer
	Colours bool
	Env     []string // of the workers
	// Urgent is closed when the workers are to be killed rather than stopped.
	Urgent <-chan struct{}
}

// workerType is the worker type of the demo.
const workerType = "demo"

// plan is the times of what the demo does. Slots count from 0.
type plan struct {
	first      time.Time // start of slot 0
	interval   time.Duration
	slots      int
	kill, back int // in which slot the leader is killed, and started again
}

// newPlan begins with the first boundary whose claims aren't open yet.
func newPlan(o Options, now time.Time) plan {
	s := slots.Must(slots.Every(o.Interval))
	kill := max(1, o.Slots/3-1)
	return plan{
		first: s.Next(now.Add(o.Interval/4 + o.Interval/20)).Start, interval: o.Interval,
		slots: o.Slots, kill: kill, back: max(kill+2, o.Slots/2),
	}
}

// start is when slot i starts.
func (p plan) start(i int) time.Time { return p.first.Add(time.Duration(i) * p.interval) }

// index is the number of a slot by its start, or −1 if it isn't shown.
func (p plan) index(start time.Time) int {
	i := int(start.Sub(p.first) / p.interval)
	if start.Before(p.first) || i >= p.slots || !p.start(i).Equal(start) {
		return -1
	}
	return i
}
