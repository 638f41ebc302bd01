package documenttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// Peer is the server of a ledger. It runs as a process.
type Peer interface {
	Kill()
	Restart()
	Pause()
	Resume()
}

// patience bounds operations that must succeed, on a machine that is busy.
const patience = time.Minute

// endsInTime gives an operation 300 ms, with which it must end.
func endsInTime(t *testing.T, what string, call func(ctx context.Context) error) error {
	t.Helper()
	began := time.Now()
	err := call(Within(t, 300*time.Millisecond))
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("%s took %v, want it to end with its context", what, took)
	}
	return err
}

// OutlivesARestart checks that a handle works again after a restart of its server, and
// so does a handle that was opened meanwhile. open opens a handle.
func OutlivesARestart(t *testing.T, p Peer, open func() store.Ledger) {
	t.Helper()
	l := open()
	first, second := storetest.Grant("job", 1), storetest.Grant("job", 2)
	if err := errors.Join(l.Init(Within(t, patience)), l.Append(Within(t, patience), first)); err != nil {
		t.Fatalf("Init() and Append() = %v, want nil", err)
	}
	p.Kill()
	late := open()
	for range 3 { // Again while the handle may already know that nobody is there.
		err := endsInTime(t, "Append() to a dead server", func(ctx context.Context) error { return l.Append(ctx, second) })
		Sentinel(t, "Append() to a dead server", err, nil)
		err = endsInTime(t, "Tail() of a dead server", func(ctx context.Context) error { _, _, err := late.Tail(ctx, "job", 1); return err })
		Sentinel(t, "Tail() of a dead server", err, nil)
	}
	p.Restart()
	if got, _, err := late.Tail(Within(t, patience), "job", 9); err != nil || len(got) != 1 {
		t.Errorf("Tail() by a handle that was opened before the server was there = %+v, %v, want 1 record", got, err)
	}
	if got, err := l.Get(Within(t, patience), "job", 1); err != nil || got != first {
		t.Errorf("Get(job, 1) after a restart = %+v, %v, want what was acknowledged", got, err)
	}
	if err := l.Append(Within(t, patience), second); err != nil {
		t.Errorf("Append() after a restart = %v, want nil", err)
	}
	if s, err := l.Now(Within(t, patience)); err != nil || s.IsZero() || s.Server == "" {
		t.Errorf("Now() after a restart = %+v, %v, want a stamp of the server", s, err)
	}
}

// SilentAppendIsUnknown checks that an append to a server that is silent has an unknown
// outcome, and may land later.
func SilentAppendIsUnknown(t *testing.T, p Peer, open func() store.Ledger) {
	t.Helper()
	l := open()
	if err := errors.Join(l.Init(Within(t, patience)), l.Append(Within(t, patience), storetest.Grant("job", 1))); err != nil {
		t.Fatalf("Init() and Append() = %v, want nil", err)
	}
	p.Pause()
	late := storetest.Grant("job", 2)
	err := endsInTime(t, "Append() to a silent server", func(ctx context.Context) error { return l.Append(ctx, late) })
	Sentinel(t, "Append() to a silent server", err, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append() to a silent server = %v, want context.DeadlineExceeded in it", err)
	}
	if err := endsInTime(t, "Close() with a silent server", l.Close); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close() with a silent server = %v, want nil or its deadline", err)
	}
	p.Resume()

	// The request lies in the server's receive buffer. Whether it is done is for
	// the key to say, and it can't be done twice, nor in place of another.
	l = open()
	rival := late
	rival.Claim = "rival"
	err = l.Append(Within(t, patience), rival)
	got, getErr := l.Get(Within(t, patience), "job", 2)
	switch {
	case getErr != nil:
		t.Errorf("Get(job, 2) = %v, want one of the two records", getErr)
	case err == nil && got.Claim != rival.Claim, errors.Is(err, store.ErrConflict) && got.Claim != late.Claim, err != nil && !errors.Is(err, store.ErrConflict):
		t.Errorf("the rival's Append() = %v, and the key holds claim %s: they contradict each other", err, got.Claim)
	}
}
