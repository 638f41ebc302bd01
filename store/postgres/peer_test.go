package postgres

import (
	"context"
	"errors"
	"net/url"
	"runtime"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// It isn't parallel, because the suite counts goroutines.
func TestAServerThatDiesOrIsSilent(t *testing.T) {
	storetest.RunPeer(t, func(t *testing.T) storetest.PeerHarness {
		t.Helper()
		s := postgrespeer.Start(t, postgrespeer.Options{})
		uri := postgrespeer.Role(t, s.URI(), "CREATE ON SCHEMA public")
		u, err := url.Parse(uri)
		must(t, "Parse()", err)
		password, _ := u.User.Password()
		return storetest.PeerHarness{
			Peer:   s,
			Secret: password,
			Open:   func(ctx context.Context) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) },
		}
	})
}

func TestAHandleThatIsClosedLeavesNoGoroutine(t *testing.T) {
	uri := postgrespeer.Shared(t)
	table := newTable()
	must(t, "Close()", initialised(t, Options{URI: uri, Table: table}).Close(within(t)))
	before := runtime.NumGoroutine()
	for range 10 {
		l, err := Open(t.Context(), Options{URI: uri, Table: table})
		must(t, "Open()", err)
		watched := make(chan error)
		ctx := within(t)
		go func() { watched <- l.Watch(ctx, func(string) {}) }()
		for range 8 {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			_, _, _ = l.Tail(ctx, "job", 1)
			cancel()
		}
		_, _, err = l.Tail(within(t), "job", 1)
		must(t, "Tail()", err)
		must(t, "Close()", l.Close(within(t)))
		if err := <-watched; !errors.Is(err, store.ErrClosed) {
			t.Errorf("Watch() of a closed handle = %v, want ErrClosed", err)
		}
	}
	for range 500 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines after Close, %d before", runtime.NumGoroutine(), before)
}
