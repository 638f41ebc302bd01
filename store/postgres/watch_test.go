package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// hints are those of a watch that is under way.
func hints(t *testing.T, uri string, l *Ledger) <-chan string {
	t.Helper()
	told := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Watch(ctx, func(workerType string) { told <- workerType }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch() = %v, want it to end with its context", err)
		}
	})
	for ctx := within(t); ctx.Err() == nil; {
		execute(t, uri, "NOTIFY "+l.channel()+", 'begin'")
		select {
		case <-told:
			for len(told) > 0 {
				<-told
			}
			return told
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("no hint came")
	return nil
}

func TestHintsComeForWhatMayFreeALeaseAlone(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	l := initialised(t, Options{URI: uri, Table: newTable()})
	other := initialised(t, Options{URI: uri, Table: newTable()})
	told := hints(t, uri, l)
	seq := int64(0)
	put := func(to *Ledger, workerType string, kind store.Kind) {
		t.Helper()
		seq++
		r := storetest.Grant(workerType, seq)
		if r.Kind = kind; kind != store.KindGrant {
			r.WindowStart = r.WindowEnd
		}
		must(t, "Append()", to.Append(within(t), r))
	}
	put(other, "elsewhere", store.KindRelease)
	put(l, "granted", store.KindGrant)
	put(l, "done", store.KindDone)
	put(l, "released", store.KindRelease)
	// A conflict stores nothing.
	again := storetest.Grant("released", seq)
	again.Kind, again.WindowStart = store.KindRelease, again.WindowEnd
	if err := l.Append(within(t), again); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Append() of a key that exists = %v, want ErrConflict", err)
	}
	execute(t, uri, "NOTIFY "+l.channel()+", 'not a worker type'")
	put(l, "unheard-of", "hologram")
	for _, want := range []string{"released", "", "unheard-of"} {
		select {
		case got := <-told:
			if got != want {
				t.Errorf("hint of %q, want %q", got, want)
			}
		case <-within(t).Done():
			t.Fatalf("no hint of %q came", want)
		}
	}
}

func TestBehindAPoolerThereAreNoHints(t *testing.T) {
	t.Parallel()
	direct := postgrespeer.Shared(t)
	for _, mode := range []string{"transaction", "session"} {
		l := initialised(t, Options{URI: postgrespeer.Pooler(t, direct, mode), Table: newTable()})
		if err := l.Watch(within(t), func(string) {}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Watch() behind a pooler in %s mode = %v, want errors.ErrUnsupported", mode, err)
		}
		r := storetest.Grant("job", 1)
		r.Kind, r.WindowStart = store.KindRelease, r.WindowEnd
		must(t, "Append() of a release", l.Append(within(t), r))
	}
}

func TestAWatchEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	s := postgrespeer.Start(t, postgrespeer.Options{})
	l := initialised(t, Options{URI: s.URI()})
	ended := make(chan error, 1)
	ctx := within(t)
	go func() { ended <- l.Watch(ctx, func(string) {}) }()
	awaits(t, s.URI(), `SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`, 1)
	s.Kill()
	if err := <-ended; err == nil || errors.Is(err, errors.ErrUnsupported) || ctx.Err() != nil {
		t.Errorf("Watch() of a server that dies = %v, want an error after which it is tried again", err)
	}
}

// A server that takes no writes any more may leave its connections open.
func TestAWatchDoesNotOutliveItsConnectionInSilence(t *testing.T) {
	t.Parallel()
	s := postgrespeer.Start(t, postgrespeer.Options{})
	l := initialised(t, Options{URI: s.URI()})
	ended := make(chan error, 1)
	go func() { ended <- l.Watch(t.Context(), func(string) {}) }()
	awaits(t, s.URI(), `SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`, 1)
	execute(t, s.URI(), `ALTER SYSTEM SET default_transaction_read_only = on`)
	execute(t, s.URI(), `SELECT pg_reload_conf()`)
	var err error
	for seq := int64(1); err == nil && seq < 1000; seq++ {
		err = l.Append(within(t), storetest.Grant("job", seq))
		time.Sleep(10 * time.Millisecond)
	}
	documenttest.Says(t, "Append() to a server that takes no writes", err, store.ErrNotStored, "takes no writes")
	select {
	case err := <-ended:
		if err == nil {
			t.Error("Watch() = nil, want an error")
		}
	case <-within(t).Done():
		t.Error("Watch() goes on without a connection")
	}
}
