package mysql

import (
	"context"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// It isn't parallel, because the suite counts goroutines.
func TestAServerThatDiesOrIsSilent(t *testing.T) {
	storetest.RunPeer(t, func(t *testing.T) storetest.PeerHarness {
		t.Helper()
		s := mysqlpeer.Start(t, mysqlpeer.Options{})
		mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs")
		uri := uriOf(t, mysqlpeer.Role(t, s.DSN()+"jobs", "ALL ON jobs.*"))
		_, login, _ := strings.Cut(uri, "://")
		_, password, _ := strings.Cut(login, ":")
		password, _, _ = strings.Cut(password, "@")
		return storetest.PeerHarness{
			Peer:   s,
			Secret: password,
			Open:   func(ctx context.Context) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) },
			Skips:  map[string]string{"a watch of *": "there are no hints"},
		}
	})
}

func TestAHandleThatIsClosedLeavesNoGoroutine(t *testing.T) {
	uri, table := uriOf(t, mysqlpeer.Database(t)), newTable()
	must(t, "Close()", initialised(t, Options{URI: uri, Table: table}).Close(within(t)))
	before := runtime.NumGoroutine()
	for range 10 {
		l, err := Open(t.Context(), Options{URI: uri, Table: table})
		must(t, "Open()", err)
		for range 8 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, _, _ = l.Tail(ctx, "job", 1)
			cancel()
		}
		_, _, err = l.Tail(within(t), "job", 1)
		must(t, "Tail()", err)
		must(t, "Close()", l.Close(within(t)))
	}
	for range 500 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines after Close, %d before", runtime.NumGoroutine(), before)
}

func TestAHostThatIsSilentIsGivenUpForTheNext(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	defer func() { _ = silent.Close() }()
	alone := opened(t, Options{URI: "mysql://root@" + silent.Addr().String() + "/d?connectTimeout=100ms"})
	_, err = alone.Now(within(t))
	documenttest.Says(t, "Now() of a silent host", err, nil, "no connection in 100ms (connectTimeout)")
	uri := strings.Replace(uriOf(t, mysqlpeer.Database(t)), "@", "@"+silent.Addr().String()+",", 1) + "?connectTimeout=200ms"
	l := opened(t, Options{URI: uri})
	for range 3 { // The machine may be busy.
		if err = l.Init(within(t)); err == nil {
			return
		}
	}
	t.Errorf("Init() with a silent host before the server = %v, want nil", err)
}
