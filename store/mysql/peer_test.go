package mysql

import (
	"context"
	"net"
	"strings"
	"testing"

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
