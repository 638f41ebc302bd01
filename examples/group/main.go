// Group shows workers that share a lease on purpose: two members of region
// east are allocated together in each slot that east wins, with one token. West,
// alone in its region, has to wait. It ends after two slots of one second.
//
//	go run ./examples/group
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "group:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	// Real regions meet in store/mongo. A ledger in memory serves one process.
	ledger := memory.New(memory.Options{})
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	allocated := make(chan workerlease.Lease)
	callbacks := workerlease.Callbacks{
		LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
			select {
			case allocated <- l:
			case <-ctx.Done():
			}
		},
	}
	var workers []*workerlease.WorkerLease
	for _, o := range []workerlease.Options{
		{InstanceID: "east-1", Group: "east"},
		{InstanceID: "east-2", Group: "east"},
		{InstanceID: "west-1", Group: "west", Priority: 1},
	} {
		o.WorkerType, o.LeaseInterval = "importer", time.Second
		w, err := workerlease.StartLeasing(ctx, ledger, o, callbacks)
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}

	members := map[int64]int{} // of the group at work, by token
	for complete := 0; complete < 2; {
		select {
		case l := <-allocated:
			fmt.Printf("%s  %s of group %s, token %d\n", l.Slot.Start.Format(time.TimeOnly), l.InstanceID, l.Group, l.Token)
			if members[l.Token]++; members[l.Token] == 2 {
				complete++
			}
		case <-ctx.Done():
			complete = 2
		}
	}
	// The end of ctx stops the workers. Members of a group release nothing: the
	// others may be at work. The lease runs out by itself.
	cancel()
	for _, w := range workers {
		<-w.Done()
	}
	return nil
}
