//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// A worker's process is this program again. It is told what to do by lines, and answers with
// lines. When nobody can tell it any more, since the benchmark has died, it dies as well.
const (
	stopNow  = "stop"
	sayCount = "count"
	working  = "working"
)

// work is the whole life of a worker's process.
func work(ctx context.Context, args []string) error {
	var name string
	var n node
	flags := flag.NewFlagSet("peers work", flag.ContinueOnError)
	flags.StringVar(&name, "peer", "", "which peer it is")
	flags.StringVar(&n.address, "address", "", "of its service")
	flags.StringVar(&n.lease, "lease", "", "what workers compete for")
	flags.StringVar(&n.id, "id", "", "of the worker")
	flags.DurationVar(&n.bound, "bound", 0, "of the lease")
	if err := flags.Parse(args); err != nil {
		return err
	}
	i := slices.IndexFunc(peers, func(p peer) bool { return p.name() == name })
	if i < 0 {
		return fmt.Errorf("no peer is named %q", name)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	say := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintln(os.Stdout, what)
	}
	var operations atomic.Int64
	n.began = func() { say(working) }
	n.counted = func() { operations.Add(1) }
	go func() {
		orders := bufio.NewScanner(os.Stdin)
		for orders.Scan() {
			switch orders.Text() {
			case stopNow:
				stop()
			case sayCount:
				say(fmt.Sprint(operations.Load()))
			}
		}
		os.Exit(1)
	}()
	err := peers[i].work(ctx, n)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
