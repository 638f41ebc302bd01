// Leader elects a leader among three nodes. It leads for as long as it lives, and
// when it has gone, another leads a second later, or little more: its turn comes on top,
// and near the end of a slot, of which too little is left to be taken over, the lead of
// the next. All of them know who does.
//
//	go run ./examples/leader
//
// In earnest, each node is a process of its own, and opens the same ledger.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal("leader: ", err)
	}
}

// elect calls lead when node is the leader, and ends its context in time, before
// anybody else leads. It returns when ctx has ended and lead has returned. This is
// all that an election takes.
func elect(ctx context.Context, client *workerlease.Client, node string, rank int, lead workerlease.Task) error {
	return client.Run(ctx, workerlease.Options{
		WorkerType:     "leader",
		InstanceID:     node,
		Priority:       rank,
		LeaseInterval:  3 * time.Second, // that often, without NoFailback, a higher priority may take over
		FailoverWithin: time.Second,     // of the leader's death
		Continuous:     true,            // on and on, with one fencing token
		NoFailback:     true,            // also when a higher priority comes back
	}, lead)
}

// witness says whom its node knows to lead.
type witness struct {
	node  string
	out   *log.Logger
	token int64
}

// Observe is not called twice at once, as each client has one worker. A release is
// told as well: with the token of the leader that has gone.
func (w *witness) Observe(e event.Event) {
	if e, ok := e.(event.HolderChanged); ok && e.Holder.Token != w.token {
		w.token = e.Holder.Token
		w.out.Printf("%s knows that %s leads", w.node, e.Holder.InstanceID)
	}
}

// run shows three nodes.
func run(ctx context.Context, w io.Writer) error {
	out := log.New(w, "", 0)
	ledger := memory.New(memory.Options{})
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()
	if err := ledger.Init(ctx); err != nil { // creates what is missing, and may be repeated
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var nodes sync.WaitGroup
	leads := make(chan context.CancelFunc)
	for rank, node := range []string{"anna", "ben", "cleo"} {
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: &witness{node, out, 0}})
		nodes.Go(func() {
			err := elect(ctx, client, node, rank, func(ctx context.Context, _ workerlease.Lease) error {
				out.Printf("%s leads", node)
				select {
				case leads <- leave:
				case <-ctx.Done():
				}
				<-ctx.Done() // the work, which goes on until then
				out.Printf("%s leads no more: %v", node, context.Cause(ctx))
				return nil
			})
			if err != nil {
				out.Printf("%s: %v", node, err)
			}
		})
	}
	for range 2 { // two leaders are enough
		select {
		case leave := <-leads:
			select {
			case <-time.After(4 * time.Second): // more than a slot
			case <-ctx.Done():
			}
			leave()
		case <-ctx.Done():
		}
	}
	cancel()
	nodes.Wait()
	return nil
}
