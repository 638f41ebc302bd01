//go:build linux

// Command peers compares slotlease with what else elects one of several workers: how long work
// stops when the holder is killed, and when it stops in order; how many operations of the store
// that costs. All workers are processes
// of their own, which reach the store as in production: a file, or connections on loopback.
// docs/performance.md says what it showed.
//
// It is a module of its own, so that the others' clients don't become dependencies of slotlease.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// The kernel ends a server when the thread that started it ends: that is the main thread, which
// lasts as long as the process.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// settings of a run.
type settings struct {
	rounds int
	bounds []time.Duration
	steady time.Duration
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "work" {
		return work(ctx, args[1:])
	}
	o := settings{bounds: []time.Duration{3 * time.Second, 5 * time.Second}}
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 20, "kills and hand-overs of each peer; 3 for a quick look")
	flags.Func("bounds", "bounds of the fail-over, in whole seconds, of which the last is that of the hand-over (default 3s,5s)", func(s string) error {
		o.bounds = nil
		for text := range strings.SplitSeq(s, ",") {
			d, err := time.ParseDuration(text)
			if err != nil {
				return err
			}
			o.bounds = append(o.bounds, d)
		}
		return nil
	})
	flags.DurationVar(&o.steady, "steady", 20*time.Second, "how long to count operations while nothing happens")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.rounds < 1 || flags.NArg() > 0 {
		return fmt.Errorf("-rounds is %d, and must be positive; other arguments: %q", o.rounds, flags.Args())
	}
	for _, d := range o.bounds {
		if d < 2*time.Second || d%time.Second != 0 {
			return fmt.Errorf("-bounds: %v: etcd needs whole seconds, at least 2", d)
		}
	}
	rows, err := measure(ctx, o)
	if err != nil {
		return err
	}
	if err := report(os.Stdout, rows); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Failed != "" {
			return fmt.Errorf("%s, %s: %s", r.Case, r.Peer, r.Failed)
		}
	}
	return nil
}
