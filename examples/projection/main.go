// Projection builds a view from a stream of events, by one worker at a time. It asks
// Valid before each event, and stores its position together with the view and the
// fencing token. When it stops in the middle, another worker goes on from there: no
// event is left out, and none counts twice.
//
//	go run ./examples/projection
//
// In earnest, each worker is a process of its own, and opens the same ledger.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, nil); err != nil {
		fmt.Fprintln(os.Stderr, "projection:", err)
		os.Exit(1)
	}
}

// project applies events from where the view stands, for as long as the lease is
// valid.
func project(ctx context.Context, l workerlease.Lease, events []int, v *view) error {
	state := v.load()
	for l.Valid() {
		if state.position == len(events) {
			<-ctx.Done() // A real stream would be asked again in a while.
			continue
		}
		state.balance += events[state.position]
		state.position++
		if err := v.store(l, state); err != nil {
			return err // Another has stored since: what was computed here is old.
		}
		select {
		case <-time.After(100 * time.Millisecond): // the work that an event takes
		case <-ctx.Done():
		}
	}
	return nil
}

// run shows two workers. The clock is for its test; nil is the real one.
func run(ctx context.Context, w io.Writer, c clock.Clock) error {
	out := log.New(w, "", 0)
	ledger := memory.New(memory.Options{Clock: c})
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	events := []int{100, -30, 5, -50, 10, 7}
	v := &view{out: out, stored: make(chan workerlease.Lease, len(events))}
	var workers sync.WaitGroup
	stop := map[string]context.CancelFunc{}
	for rank, name := range []string{"anna", "ben"} {
		ctx, cancel := context.WithCancel(ctx)
		stop[name] = cancel
		client := workerlease.NewClient(ledger, workerlease.ClientOptions{Clock: c})
		o := workerlease.Options{
			WorkerType: "balance", InstanceID: name, Priority: rank,
			LeaseInterval: 2 * time.Second, Continuous: true, FailoverWithin: time.Second,
		}
		workers.Go(func() {
			err := client.Run(ctx, o, func(ctx context.Context, l workerlease.Lease) error { return project(ctx, l, events, v) })
			if err != nil {
				out.Printf("%s: %v", name, err)
			}
		})
	}
	for n := 1; n <= len(events); n++ {
		select {
		case l := <-v.stored:
			if n == 3 {
				stop[l.InstanceID]() // as when its process is replaced by a new version
			}
		case <-ctx.Done():
		}
	}
	cancel()
	workers.Wait()
	return nil
}

// state is the view and the position up to which it was built.
type state struct{ position, balance int }

// view stands for a row of a database. Position, view and token are stored in one
// step: "update … where token <= ?".
type view struct {
	out    *log.Logger
	stored chan workerlease.Lease

	mu      sync.Mutex
	highest int64
	state   state
}

var errStale = errors.New("a later lease has stored already")

func (v *view) load() state {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state
}

func (v *view) store(l workerlease.Lease, s state) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l.Token < v.highest {
		return errStale
	}
	v.highest, v.state = l.Token, s
	v.out.Printf("%s stores position %d, balance %d", l.InstanceID, s.position, s.balance)
	v.stored <- l
	return nil
}
