// Manytypes shares a hundred tenants between two nodes: each tenant is a worker type
// of its own, so that in each slot one node works for it. A node has one Client,
// whose workers share what it knows of store time, and one observer. Ties are broken
// at random, so each node gets about half of them. After two slots it ends.
//
//	go run ./examples/manytypes
//
// In earnest, each node is a process of its own, and opens the same ledger.
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

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, nil); err != nil {
		fmt.Fprintln(os.Stderr, "manytypes:", err)
		os.Exit(1)
	}
}

const tenants = 100

// serve works for whichever tenants the node gets, until ctx ends.
func serve(ctx context.Context, client *workerlease.Client, node string, work workerlease.Task) error {
	errs := make([]error, tenants)
	var workers sync.WaitGroup
	for i := range tenants {
		o := workerlease.Options{
			WorkerType: fmt.Sprintf("tenant-%02d", i), InstanceID: node,
			LeaseInterval: 2 * time.Second, TieBreak: priority.Random,
		}
		workers.Go(func() { errs[i] = client.Run(ctx, o, work) })
	}
	workers.Wait()
	return errors.Join(errs...)
}

// run shows two nodes. The clock is for its test; nil is the real one.
func run(ctx context.Context, w io.Writer, c clock.Clock) error {
	out := log.New(w, "", 0)
	ledger := memory.New(memory.Options{Clock: c})
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	worked := make(chan workerlease.Lease, 2*tenants)
	var nodes sync.WaitGroup
	for _, node := range []string{"north", "south"} {
		// It is told of all of the node's workers: which one, e.Of() tells.
		observer := workerlease.ObserverFunc(func(e workerlease.Event) {
			if e, ok := e.(workerlease.StoreFailed); ok {
				out.Printf("%s, %s: %v", node, e.Of().WorkerType, e.Err)
			}
		})
		client := workerlease.NewClient(ledger, workerlease.ClientOptions{Clock: c, Observer: observer})
		nodes.Go(func() {
			err := serve(ctx, client, node, func(ctx context.Context, l workerlease.Lease) error {
				worked <- l
				<-ctx.Done()
				return nil
			})
			if err != nil {
				out.Printf("%s: %v", node, err)
			}
		})
	}
	for slot := range 2 {
		served, share := map[string]bool{}, map[string]int{}
		for len(served) < tenants && ctx.Err() == nil {
			select {
			case l := <-worked:
				served[l.WorkerType] = true
				share[l.InstanceID]++
			case <-ctx.Done():
			}
		}
		out.Printf("slot %d: %d tenants, %d served by north, %d by south", slot+1, len(served), share["north"], share["south"])
	}
	cancel()
	nodes.Wait()
	return nil
}
