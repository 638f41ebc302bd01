// Outbox publishes the rows of an outbox, oldest first, by one worker at a time.
// Each publish carries the fencing token of the lease, and the topic refuses one
// that is lower than the highest it has seen: that of a worker that was held up, and
// doesn't know yet that another publishes.
//
//	go run ./examples/outbox
//
// In earnest, each worker is a process of its own, and opens the same ledger.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal("outbox: ", err)
	}
}

// drain publishes rows for as long as the lease is valid. A row is crossed out when
// it has been published: a worker that dies in between leaves it to be published
// again, so the rows' numbers must be published, too.
func drain(ctx context.Context, l workerlease.Lease, from *outbox, to *topic) error {
	for l.Valid() {
		row, found := from.oldest()
		if !found {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		if err := to.publish(l, row); err != nil {
			return err // another publishes, or there is no topic: give up the slot
		}
		from.crossOut(row)
	}
	return nil
}

// run shows two workers.
func run(ctx context.Context, w io.Writer) error {
	out := log.New(w, "", 0)
	ledger := memory.New(memory.Options{})
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()
	if err := ledger.Init(ctx); err != nil { // creates what is missing, and may be repeated
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	orders := &outbox{rows: []int{1, 2, 3}}
	topic := &topic{out: out, published: make(chan workerlease.Lease, 10)}
	var workers sync.WaitGroup
	stop := map[string]func(){}
	for rank, name := range []string{"anna", "ben"} {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		stop[name] = func() {
			cancel()
			<-ended
		}
		client := workerlease.NewClient(ledger, workerlease.ClientOptions{})
		o := workerlease.Options{
			WorkerType: "orders", InstanceID: name, Priority: rank,
			LeaseInterval: 2 * time.Second, Continuous: true, FailoverWithin: time.Second,
		}
		workers.Go(func() {
			defer close(ended)
			err := client.Run(ctx, o, func(ctx context.Context, l workerlease.Lease) error { return drain(ctx, l, orders, topic) })
			if err != nil {
				out.Printf("%s: %v", name, err)
			}
		})
	}
	await := func(n int) (last workerlease.Lease) {
		for range n {
			select {
			case last = <-topic.published:
			case <-ctx.Done():
			}
		}
		return last
	}
	if first := await(3); ctx.Err() == nil {
		stop[first.InstanceID]()
		orders.add(4, 5)
		await(2)
		if err := topic.publish(first, 6); err != nil { // It was on its way since before the stop.
			out.Printf("%s is refused: %v", first.InstanceID, err)
		}
	}
	cancel()
	workers.Wait()
	return nil
}

// outbox stands for a table of rows that were written together with what they tell.
type outbox struct {
	mu   sync.Mutex
	rows []int
}

func (o *outbox) add(rows ...int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rows = append(o.rows, rows...)
}

func (o *outbox) oldest() (row int, found bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rows) == 0 {
		return 0, false
	}
	return o.rows[0], true
}

func (o *outbox) crossOut(row int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rows) > 0 && o.rows[0] == row {
		o.rows = o.rows[1:]
	}
}

// topic stands for whatever is published to, and compares tokens in one step with
// that: an update of a row "where token <= ?", a transaction, a compare-and-set.
type topic struct {
	out       *log.Logger
	published chan workerlease.Lease

	mu      sync.Mutex
	highest int64
}

var errStale = errors.New("a later lease has published already")

func (t *topic) publish(l workerlease.Lease, row int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.Token < t.highest {
		return errStale
	}
	t.highest = l.Token
	t.out.Printf("%s publishes order %d", l.InstanceID, row)
	t.published <- l
	return nil
}
