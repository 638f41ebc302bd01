// Cronjob makes the jobs of github.com/robfig/cron run on one of several nodes: a
// chain of OnlyHolder skips them everywhere but on the holder of the lease.
//
//	go run ./examples/cronjob
//
// Each node's cron goes by the clock of its own machine. When the lease moves from
// one node to another between the moments at which their clocks show the time of a
// job, it runs on both, or on none: good enough for polling and clearing up. A job
// that must be done once for each time of its schedule is better off with
// workerlease.Run, slots.Cron and a Job.
//
// The lease should be Continuous: for some milliseconds around the boundary of a slot,
// where most jobs are due, a lease that isn't has no holder.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal("cronjob: ", err)
	}
}

// run shows two nodes, whose job is due each second.
func run(ctx context.Context, w io.Writer) error {
	out := log.New(w, "", 0)
	ledger := memory.New(memory.Options{})
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()
	if err := ledger.Init(ctx); err != nil { // creates what is missing, and may be repeated
		return err
	}

	nodes := map[string]*node{}
	for rank, name := range []string{"anna", "ben"} {
		n, err := start(ctx, ledger, name, rank, out)
		if err != nil {
			return err
		}
		defer n.stop()
		nodes[name] = n
	}
	pause(ctx, 7*time.Second)
	out.Print("anna stops")
	nodes["anna"].stop()
	pause(ctx, 5*time.Second)
	return ctx.Err()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// node has a worker and a cron.
type node struct {
	worker *workerlease.WorkerLease
	cron   *cron.Cron
}

func start(ctx context.Context, ledger store.Ledger, name string, rank int, out *log.Logger) (*node, error) {
	worker, err := workerlease.NewClient(ledger, workerlease.ClientOptions{}).StartLeasing(ctx,
		workerlease.Options{
			WorkerType: "cron", InstanceID: name, Priority: rank,
			LeaseInterval: 4 * time.Second, FailoverWithin: time.Second, Continuous: true,
		},
		workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {}}) // the jobs are the work
	if err != nil {
		return nil, err
	}
	crontab := cron.New(cron.WithSeconds(), cron.WithChain(OnlyHolder(ctx, worker, cron.DiscardLogger)))
	job := Leased(func(_ context.Context, l workerlease.Lease) error {
		out.Printf("%s runs the job", l.InstanceID)
		return nil
	})
	if _, err := crontab.AddJob("* * * * * *", job); err != nil {
		return nil, err
	}
	crontab.Start()
	return &node{worker, crontab}, nil
}

func (n *node) stop() {
	<-n.cron.Stop().Done() // when its jobs have returned
	limited, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = n.worker.StopLeasing(limited)
}
