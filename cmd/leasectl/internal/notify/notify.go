// Package notify tells others what came of a command's runs: it runs a command of the operator's, or sends a POST to
// a URL.
//
// A [Notifier] observes the events of a worker. It never holds up leasing: each target has a queue, and one goroutine
// while something is in it. A notification that fails is tried again a few times. What is given up, and what doesn't fit
// the queue, is reported.
package notify

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/workerlease/event"
)

// Event is what a target may be told of. Its text is that of the flag, without "on-".
type Event string

// The events.
const (
	Failure Event = "failure"
	Missed  Event = "missed"
	Success Event = "success"
	GivenUp Event = "given-up"
)

// Events lists them.
func Events() []Event { return []Event{Failure, Missed, Success, GivenUp} }

// Outcome is what became of a notification.
type Outcome string

// The outcomes.
const (
	Sent Outcome = "sent"
	// Failed is one that was given up, after all tries.
	Failed Outcome = "failed"
	// Dropped is one that was never tried: too many waited, or it was too late.
	Dropped Outcome = "dropped"
)

// Outcomes lists them.
func Outcomes() []Outcome { return []Outcome{Sent, Failed, Dropped} }

// Options of a notifier.
type Options struct {
	// Targets are told of their events; there may be none.
	Targets map[Event]Target
	// Env is the environment of commands, to which the facts are added.
	Env []string
	// Stderr gets what commands write; nil: nothing does.
	Stderr *os.File
	// Output is the end of what the newest run wrote; nil: it isn't kept.
	Output func() string
	// Failed is called, on any goroutine, when a target could not be told.
	Failed func(of Event, to string, err error)
	// Count is called, on any goroutine, with what became of n notifications; nil: nobody counts.
	Count func(of Event, as Outcome, n int)
}

// The bounds of what a target is told.
const (
	// mostQueued is how many notifications wait for one target. The oldest are dropped.
	mostQueued = 100
	// tryTime bounds one POST.
	tryTime = 10 * time.Second
	// commandGrace is what a command has between SIGTERM and its end.
	commandGrace = 2 * time.Second
)

var (
	// commandTime bounds one command, which gets SIGTERM commandGrace before that.
	commandTime = 30 * time.Second
	// flushTime is how long the end waits for what is queued.
	flushTime = 5 * time.Second
)

// waits lie between the tries of one notification.
var waits = []time.Duration{time.Second, 5 * time.Second, 15 * time.Second}

// Notifier tells targets what happens to a worker.
type Notifier struct {
	output func() string
	queues map[Event]*queue
	serial atomic.Int64 // the number of the newest facts
}

// New returns a notifier, which has no goroutine before there is something to tell.
func New(o Options) *Notifier {
	n := &Notifier{output: o.Output, queues: map[Event]*queue{}}
	for of, to := range o.Targets {
		n.queues[of] = newQueue(of, to, o)
	}
	return n
}

// Observe queues what is to be told of an event. It doesn't block.
func (n *Notifier) Observe(e event.Event) {
	for _, f := range of(e) {
		to := n.queues[f.Event]
		if to == nil {
			continue
		}
		f.serial = n.serial.Add(1)
		if n.output != nil && f.ran {
			f.Output = n.output()
		}
		to.add(f)
	}
}

// Close waits until all is told, for a few seconds at most, or until urgent is closed. What has failed by then is not
// tried again.
func (n *Notifier) Close(urgent <-chan struct{}) {
	late, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	go func() {
		select {
		case <-urgent:
			cancel()
		case <-late.Done():
		}
	}()
	var closing sync.WaitGroup
	for _, q := range n.queues {
		closing.Go(func() { q.close(late) })
	}
	closing.Wait()
}
