package workerlease_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Outside of a bubble the clock must keep boot time, however busy the machine is.
func TestTheSystemClockIsNeverTakenForABubbles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("boot time is read on Linux only")
	}
	var group sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for range 5000 {
				if _, ok := workerlease.NewSystemClock().(interface{ Boottime() time.Duration }); !ok {
					t.Error("no boot time outside of a bubble")
					return
				}
			}
		})
	}
	group.Wait()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for range 20 {
			if _, ok := workerlease.NewSystemClock().(interface{ Boottime() time.Duration }); ok {
				t.Error("boot time inside of a bubble")
			}
		}
		if !time.Now().Equal(began) {
			t.Error("looking took time of the bubble")
		}
	})
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// logged sets slog's default logger until the test ends. It is that of package log meanwhile, which slog doesn't undo: the
// error of an example that fails would be told to nobody.
func logged(t *testing.T) *lines {
	l, before, flags := &lines{}, slog.Default(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(os.Stderr)
		log.SetFlags(flags)
	})
	return l
}

func TestThePackageLevelFunctionsLogTroublesToSlog(t *testing.T) {
	log := logged(t)
	synctest.Test(t, func(t *testing.T) {
		down := faulty(t, nil)
		down.Break(faultstore.Down())
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		worker, err := workerlease.StartTask(ctx, memory.New(memory.Options{}), workerlease.Options{WorkerType: "task"},
			func(context.Context, workerlease.Lease) error {
				if calls++; calls == 1 {
					return errors.New("no paper")
				}
				panic("out of ink")
			})
		must(t, err)
		lost, err := workerlease.StartLeasing(ctx, down, workerlease.Options{WorkerType: "lost"}, workerlease.Callbacks{LeaseAllocated: nothing})
		must(t, err)
		at(11 * time.Minute)
		cancel()
		<-worker.Done()
		<-lost.Done()
	})
	for _, want := range []string{
		`level=WARN msg="task failed"`, "no paper", `level=ERROR msg="callback panicked"`, "out of ink", "default_test.go:",
		`level=WARN msg="store failed"`, "workerType=lost", "connection refused",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s", want)
		}
	}
	if strings.Contains(log.String(), "level=INFO") || strings.Contains(log.String(), "level=DEBUG") {
		t.Errorf("the log has more than troubles:\n%s", log)
	}
}

func TestAClientLogsNothingUnlessAsked(t *testing.T) {
	log := logged(t)
	synctest.Test(t, func(t *testing.T) {
		client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{})
		w := start(t, setup{client: client, task: func(context.Context, workerlease.Lease) error { return errWork }})
		at(6 * time.Minute)
		w.stop(t)
		if err := w.Status().LastError; !errors.Is(err, errWork) {
			t.Errorf("LastError = %v, want %v", err, errWork)
		}
	})
	if log.String() != "" {
		t.Errorf("logged:\n%s", log)
	}
}

func TestRunSaysThatTheReleaseFailed(t *testing.T) {
	logged(t)
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- workerlease.Run(ctx, ledger, workerlease.Options{WorkerType: "job"},
				func(ctx context.Context, _ workerlease.Lease) error { <-ctx.Done(); return ctx.Err() })
		}()
		at(6 * time.Minute)
		ledger.Break(faultstore.Down())
		cancel()
		err := <-ended
		if !errors.Is(err, workerlease.ErrNotReleased) || errors.Is(err, context.Canceled) || !errors.Is(err, faultstore.ErrDown) ||
			!strings.Contains(err.Error(), "did not answer within 10s") || strings.Contains(err.Error(), "context canceled") {
			t.Errorf("Run = %v, want that the lease may not have been released, and why", err)
		}
		if got := time.Since(t0); got != 6*time.Minute+10*time.Second {
			t.Errorf("Run returned at %v, want 10 s after its context ended", got)
		}
	})
}

// bubbled counts the goroutines of the test's bubble.
func bubbled() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte(", synctest bubble "))
}

func TestAnUnreleasedClaimKeepsNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{})
		at(6 * time.Minute)
		before := bubbled()
		claim, err := client.TryClaim(t.Context(), workerlease.Options{WorkerType: "job"})
		must(t, err)
		synctest.Wait()
		if n := bubbled() - before; before < 1 || n != 0 {
			t.Errorf("a claim keeps %d goroutines, want none", n)
		}
		at(11 * time.Minute)
		if n := bubbled() - before; n != 0 || claim.Context().Err() == nil {
			t.Errorf("%d goroutines are left after the claim's slot, and its context has ended with %v", n, claim.Context().Err())
		}
	})
}

func TestStatusShowsNoZeroTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, nil)
		ledger.Break(faultstore.Down())
		w := start(t, setup{ledger: ledger, Options: named("me", 0)})
		for _, when := range []time.Duration{time.Second, 6 * time.Minute, 8 * time.Minute, 11 * time.Minute} {
			at(when)
			s := w.Status()
			text, err := json.Marshal(s)
			must(t, err)
			if all := string(text) + s.String(); strings.Contains(all, "0001-01-01") {
				t.Errorf("at %v: %s", when, all)
			}
			if down := when <= 6*time.Minute; s.Healthy() == down || strings.Contains(string(text), "StoreTime") == down {
				t.Errorf("at %v: healthy %v, %s", when, s.Healthy(), text)
			}
			if !strings.Contains(string(text), `"LastError":"`) {
				t.Errorf("at %v: %s", when, text)
			}
			if when == 6*time.Minute {
				ledger.Mend()
			}
		}
	})
}

func TestNoLoggerIsNoPanic(t *testing.T) {
	log := logged(t)
	for _, o := range []event.Observer{event.LogToZap(nil), event.LogTo(nil)} {
		o.Observe(event.Missed{})
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines by the default logger, want that of LogTo(nil):\n%s", n, log)
	}
}
