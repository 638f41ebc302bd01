// Gocron lets github.com/go-co-op/gocron run each job on one of several nodes: an
// Elector and a Locker over a ledger of this module. Two schedulers with clocks that
// are 300 ms apart run a job that is due every two seconds. After three runs it ends.
//
//	cd examples/gocron && go run .
//
// It is a module of its own, so that gocron doesn't become a dependency of slotlease.
// A job that must be done, and is to be tried again when it fails, is better off with
// workerlease.Run with a Job.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal("gocron: ", err)
	}
}

// run shows two nodes.
func run(ctx context.Context, w io.Writer) (err error) {
	out := log.New(w, "", 0)
	ledger := memory.New(memory.Options{})
	defer func() { err = errors.Join(err, ledger.Close(context.WithoutCancel(ctx))) }()
	if err := ledger.Init(ctx); err != nil { // creates what is missing, and may be repeated
		return err
	}

	ran := make(chan string, 10)
	for name, ahead := range map[string]time.Duration{"anna": 0, "ben": 300 * time.Millisecond} {
		locker := &Locker{
			Client:  workerlease.NewClient(ledger, workerlease.ClientOptions{}),
			Options: workerlease.Options{InstanceID: name, LeaseInterval: 2 * time.Second},
		}
		defer locker.Wait()
		scheduler, err := gocron.NewScheduler(
			gocron.WithLocation(time.UTC),
			gocron.WithClock(skewed{clockwork.NewRealClock(), ahead}),
			gocron.WithDistributedLocker(locker))
		if err != nil {
			return err
		}
		// Slots begin at each even second: it is due in the middle of each.
		_, err = scheduler.NewJob(gocron.CronJob("1-59/2 * * * * *", true), gocron.NewTask(func() { ran <- name }), gocron.WithName("greeting"))
		if err != nil {
			return err
		}
		scheduler.Start()
		defer func() { _ = scheduler.Shutdown() }()
	}
	for i := range 3 {
		select {
		case name := <-ran:
			out.Printf("run %d, by %s", i+1, name)
		case <-ctx.Done():
		}
	}
	return nil
}

// skewed is a clock that is ahead of another.
type skewed struct {
	clockwork.Clock
	ahead time.Duration
}

func (s skewed) Now() time.Time                  { return s.Clock.Now().Add(s.ahead) }
func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }
func (s skewed) Until(t time.Time) time.Duration { return t.Sub(s.Now()) }
