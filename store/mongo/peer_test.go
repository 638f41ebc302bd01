package mongo

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestHandleOutlivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	peer := mongopeer.Start(t)
	l := open(t, Options{URI: peer.URI()})
	first, second := storetest.Grant("job", 1), storetest.Grant("job", 2)
	if err := l.Append(within(t, patience), first); err != nil {
		t.Fatalf("Append() = %v, want nil", err)
	}
	peer.Kill()
	began := time.Now()
	err := l.Append(within(t, 300*time.Millisecond), second)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("Append() to a dead server took %v, want it to end with its context", took)
	}
	documenttest.Sentinel(t, "Append() to a dead server", err, nil)
	peer.Restart()
	if got, err := l.Get(within(t, patience), "job", 1); err != nil || got != first {
		t.Errorf("Get(job, 1) after a restart = %+v, %v, want what was acknowledged", got, err)
	}
	if err := l.Append(within(t, patience), second); err != nil {
		t.Errorf("Append() after a restart = %v, want nil", err)
	}
	if s, err := l.Now(within(t, patience)); err != nil || s.Server != peer.Addr() {
		t.Errorf("Now() after a restart = %+v, %v, want a stamp of %s", s, err, peer.Addr())
	}
}

func TestAppendToASilentServerIsUnknownAndMayLandLater(t *testing.T) {
	t.Parallel()
	peer := mongopeer.Start(t)
	l := open(t, Options{URI: peer.URI()})
	if err := l.Append(within(t, patience), storetest.Grant("job", 1)); err != nil {
		t.Fatalf("Append() = %v, want nil", err)
	}
	peer.Pause()
	late := storetest.Grant("job", 2)
	began := time.Now()
	err := l.Append(within(t, 300*time.Millisecond), late)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("Append() to a silent server took %v, want it to end with its context", took)
	}
	documenttest.Sentinel(t, "Append() to a silent server", err, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append() to a silent server = %v, want context.DeadlineExceeded in it", err)
	}
	began = time.Now()
	if err := l.Close(within(t, 300*time.Millisecond)); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close() with a silent server = %v, want nil or its deadline", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("Close() with a silent server took %v, want it to end with its context", took)
	}
	peer.Resume()

	// The command lies in the server's receive buffer. Whether it is done is for
	// the key to say, and it can't be done twice, nor in place of another.
	l = open(t, Options{URI: peer.URI()})
	rival := late
	rival.Claim = "rival"
	err = l.Append(within(t, patience), rival)
	got, getErr := l.Get(within(t, patience), "job", 2)
	switch {
	case getErr != nil:
		t.Errorf("Get(job, 2) = %v, want one of the two records", getErr)
	case err == nil && got.Claim != rival.Claim, errors.Is(err, store.ErrConflict) && got.Claim != late.Claim, err != nil && !errors.Is(err, store.ErrConflict):
		t.Errorf("the rival's Append() = %v, and the key holds claim %s: they contradict each other", err, got.Claim)
	}
}

func TestCallersClientStaysOpen(t *testing.T) {
	t.Parallel()
	client := dial(t, mongopeer.URI(t))
	name := database(t, client)
	l := open(t, Options{Client: client, Database: name})
	if err := l.Append(within(t, patience), storetest.Grant("job", 1)); err != nil {
		t.Fatalf("Append() = %v, want nil", err)
	}
	if s, err := l.Now(within(t, patience)); err != nil || s.Server == "" || s.IsZero() {
		t.Errorf("Now() by the caller's client = %+v, %v, want a stamp that names its server", s, err)
	}
	if err := l.Close(within(t, patience)); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
	if err := l.Append(within(t, patience), storetest.Grant("job", 2)); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Append() after Close() = %v, want ErrClosed", err)
	}
	other := open(t, Options{Client: client, Database: name})
	if got, err := other.Get(within(t, patience), "job", 1); err != nil || got != storetest.Grant("job", 1) {
		t.Errorf("Get() by another ledger on the same client = %+v, %v, want the record", got, err)
	}
}

func TestURINamesDatabaseAndCollection(t *testing.T) {
	t.Parallel()
	uri := mongopeer.URI(t)
	client := dial(t, uri)
	name := database(t, client)
	l := open(t, Options{URI: withPath(t, uri, name, "my-leases")})
	if err := l.Append(within(t, patience), storetest.Grant("job", 1)); err != nil {
		t.Fatalf("Append() = %v, want nil", err)
	}
	names, err := client.Database(name).ListCollectionNames(within(t, patience), map[string]any{})
	if err != nil || len(names) != 1 || names[0] != "my-leases" {
		t.Errorf("collections = %q, %v, want my-leases", names, err)
	}
}
