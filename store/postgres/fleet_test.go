package postgres

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/workerlease"
)

// fleet judges what workers do.
type fleet struct {
	t *testing.T

	mu      sync.Mutex
	working string // who works, or nobody
	token   int64
	led     int
}

// work is a task that works as long as it may.
func (f *fleet) work(name string) workerlease.Task {
	return func(ctx context.Context, l workerlease.Lease) error {
		f.mu.Lock()
		if f.working != "" {
			f.t.Errorf("%s works beside %s", name, f.working)
		}
		if l.Token <= f.token {
			f.t.Errorf("%s works with token %d after %d", name, l.Token, f.token)
		}
		f.working, f.token = name, l.Token
		f.led++
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		f.working = ""
		f.mu.Unlock()
		return nil
	}
}

// leases is how many there were.
func (f *fleet) leases() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.led
}

// awaitLeases waits for some more leases.
func (f *fleet) awaitLeases(more int) {
	f.t.Helper()
	from := f.leases()
	for end := time.Now().Add(patience); f.leases() < from+more; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%d leases in %v, want %d", f.leases()-from, patience, more)
		}
	}
}

// The primary dies while a worker's append waits for the standby, which takes over. It comes back as nobody.
func TestWorkersLiveThroughAFailover(t *testing.T) {
	t.Parallel()
	p := startPair(t, true)
	initialised(t, Options{URI: p.both()})
	f := &fleet{t: t}
	every, err := slots.Every(2 * time.Second)
	must(t, "Every()", err)
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	for i := range 3 {
		name := fmt.Sprint("w", i)
		l := opened(t, Options{URI: p.both(), MaxConns: 2})
		o := workerlease.Options{WorkerType: "job", InstanceID: name, Schedule: every, Priority: i}
		ended.Go(func() {
			if err := workerlease.NewClient(l, workerlease.ClientOptions{}).Run(ctx, o, f.work(name)); err != nil {
				t.Errorf("%s: Run() = %v, want nil", name, err)
			}
		})
	}
	f.awaitLeases(2)
	p.standby.Pause() // Nothing is acknowledged from here on, and much is committed.
	time.Sleep(5 * time.Second)
	p.primary.Kill()
	p.standby.Resume()
	postgrespeer.Exec(t, p.standby.URI(), `SELECT pg_promote()`, `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`)
	f.awaitLeases(3)
}
