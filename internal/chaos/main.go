//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	err := dispatch(os.Args[1:])
	if err != nil {
		if !errors.Is(err, errReported) {
			fmt.Fprintln(os.Stderr, "chaos:", err)
		}
		os.Exit(1)
	}
}

// dispatch runs what this program is: the harness, or one of its tools.
func dispatch(args []string) error {
	if len(args) > 0 && args[0] == workCommand {
		return doWork()
	}
	if len(args) > 1 && args[0] == lockCommand {
		return holdLock(args[1], len(args) > 2)
	}
	if len(args) > 2 && args[0] == enterCommand {
		return enter(world(args[1]), args[2:])
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	if err := adopt(); err != nil {
		return err
	}
	if os.Getenv(supervised) == "" {
		return supervise(args)
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err = run(ctx, o)
	if ctx.Err() != nil {
		return errors.New("interrupted; everything is stopped")
	}
	return err
}

// parse reads the flags of the harness.
func parse(args []string) (o settings, err error) {
	flags := flag.NewFlagSet("chaos", flag.ExitOnError)
	flags.StringVar(&o.scenario, "scenario", "chaos", "`scenario` to run: chaos, takeover, rolling, done, overrun or escapes")
	flags.IntVar(&o.tries, "tries", 0, "of the others than chaos: how many deaths, deployments, kills, runs or commands; 0: 100, 20, 200, 40 or 200")
	flags.StringVar(&o.store, "store", "sqlite", "`store` to run over: "+storeNames())
	flags.DurationVar(&o.duration, "duration", time.Minute, "of chaos: how long to strike; the run takes some 30 s more")
	flags.Uint64Var(&o.seed, "seed", 0, "of what is drawn; 0 draws one")
	flags.StringVar(&o.older, "older", "", "of rolling, done and overrun: `path` of an older leasectl, beside which this one works")
	flags.BoolVar(&o.keep, "keep", false, "keep the folder with the logs and the store")
	_ = flags.Parse(args)
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case scenarios[o.scenario].run == nil:
		err = fmt.Errorf("-scenario %q: use chaos, takeover, rolling, done, overrun or escapes", o.scenario)
	case o.older != "" && !scenarios[o.scenario].older:
		err = fmt.Errorf("-older %s: use -scenario rolling, done or overrun", o.older)
	case o.tries < 0 || o.tries > 0 && o.scenario == "chaos":
		err = fmt.Errorf("-tries %d: must be positive, and chaos takes -duration instead", o.tries)
	case storeFaults[o.store] == nil:
		err = fmt.Errorf("-store %q: use one of %s", o.store, storeNames())
	case o.scenario != "chaos" && slower(o.store) > 1:
		err = fmt.Errorf("-scenario %s -store %s: the clock of that store is too coarse for these slots; use -scenario chaos", o.scenario, o.store)
	case o.duration < cycle*slower(o.store):
		err = fmt.Errorf("-duration %v: must be at least %v", o.duration, cycle*slower(o.store))
	}
	o.tries = cmp.Or(o.tries, scenarios[o.scenario].tries)
	return o, err
}

// supervised is the environment variable of a harness that is supervised.
const supervised = "CHAOS_SUPERVISED"

// supervise runs the harness as a separate process and, however that ends, kills the
// processes that it has left: nothing else ends a stopped guard.
func supervise(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), supervised+"=1")
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := start(c); err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for caught := range signals {
			_ = c.Process.Signal(caught)
		}
	}()
	err = c.Wait()
	if e, failed := errors.AsType[*exec.ExitError](err); failed && e.ExitCode() == 1 {
		err = errReported
	}
	err = errors.Join(err, killAll())
	reapAll()
	return err
}

// dispatch returns these when the report, or the supervised harness, has printed why.
var (
	errVerdict  = errors.New("something is not as it should be")
	errReported = errors.New("the harness failed")
)
