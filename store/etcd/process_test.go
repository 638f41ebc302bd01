package etcd

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestMain(m *testing.M) {
	storetest.PlayContender(func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) })
	parallel.Waiting() // for servers that don't answer
	m.Run()
}

func TestOfSeveralProcessesOneWinsEachKey(t *testing.T) {
	t.Parallel()
	storetest.ProcessRace{At: fresh(etcdpeer.Shared(t)), Processes: 4, Goroutines: 3, Rounds: 100}.Run(t)
}

func TestCloseLeavesNoGoroutineBehind(t *testing.T) {
	uri := fresh(etcdpeer.Shared(t))
	before := runtime.NumGoroutine()
	for range 3 {
		l, err := Open(t.Context(), Options{URI: uri})
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Append(within(t, 20*time.Second), storetest.Grant("job", 1))
		if _, err := l.Now(within(t, 20*time.Second)); err != nil {
			t.Fatal(err)
		}
		watched := make(chan error)
		go func() { watched <- l.Watch(t.Context(), func(string) {}) }()
		if err := l.Close(within(t, 20*time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := <-watched; !errors.Is(err, store.ErrClosed) {
			t.Errorf("Watch() of a ledger that is closed = %v, want ErrClosed", err)
		}
	}
	after := 0
	for range 100 {
		if after = runtime.NumGoroutine(); after <= before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("%d goroutines are left of %d before:\n%s", after, before, stacks[:runtime.Stack(stacks, true)])
}
