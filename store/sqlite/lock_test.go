package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// hold takes the write lock of a file until the returned function is called.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	conn, err := raw(t, path).Conn(t.Context())
	must(t, "Conn()", err)
	must(t, "ExecContext()", documenttest.ErrorOf(conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")))
	return func() {
		wantErr(t, "ExecContext()", documenttest.ErrorOf(conn.ExecContext(t.Context(), "ROLLBACK")), nil)
		_ = conn.Close()
	}
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	path := grown(t)
	for name, create := range map[string]func() string{
		"append":   func() string { return path },
		"creation": func() string { return filepath.Join(t.TempDir(), "new.db") },
	} {
		t.Run(name, func(t *testing.T) {
			path := create()
			l := open(t, Options{Path: path, BusyTimeout: time.Hour})
			release := hold(t, path)
			defer release()

			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			wantErr(t, "Append() with a deadline while the file is locked", l.Append(ctx, storetest.Grant("job", 31)), context.DeadlineExceeded)
			cause := errors.New("slot is over")
			causal, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(30*time.Millisecond, func() { stop(cause) })
			if err := l.Append(causal, storetest.Grant("job", 31)); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
				t.Errorf("Append() cancelled while the file is locked = %v, want Canceled and its cause", err)
			}
		})
	}
}

// Whoever waits no longer than for its context, as workers do, learns what it waited for.
func TestAnOperationThatEndsWhileTheFileIsLockedSaysSo(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path, BusyTimeout: time.Hour})
	release := hold(t, path)
	defer release()
	all := documenttest.Within(t, time.Minute)
	for name, act := range map[string]func(ctx context.Context) error{
		"append": func(ctx context.Context) error { return l.Append(ctx, storetest.Grant("job", 31)) },
		"roster": func(ctx context.Context) error {
			return l.Attend(ctx, []store.Presence{{WorkerType: "job", ID: "1", Client: "1", InstanceID: "a", Phase: store.PhaseCandidate}})
		},
	} {
		var err error
		for limit := 10 * time.Millisecond; err == nil || !strings.Contains(err.Error(), path+" is locked by another process"); limit *= 2 {
			ctx, cancel := context.WithTimeout(all, limit) // It has to be tried first.
			err = act(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || all.Err() != nil {
				t.Fatalf("%s while the file is locked = %v, want the end of its context, and that %s is locked", name, err, path)
			}
		}
	}
}

func TestAnAppendWaitsForTheLockAndReadersDoNot(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path, BusyTimeout: time.Hour})
	release := hold(t, path)
	appended := make(chan error, 1)
	go func() { appended <- l.Append(t.Context(), storetest.Grant("job", 31)) }()
	if got, _, err := open(t, Options{Path: path, ReadOnly: true}).Tail(t.Context(), "job", 1); err != nil || got[0].Seq != 30 {
		t.Errorf("Tail() while the file is locked = %v, %v, want Seq 30", got, err)
	}
	select {
	case err := <-appended:
		t.Errorf("Append() while the file is locked = %v, want it to wait", err)
	case <-time.After(50 * time.Millisecond):
	}
	release()
	wantErr(t, "Append() after the lock was released", <-appended, nil)
}

func TestALockHeldTooLongIsAnUnknownOutcome(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path, BusyTimeout: 20 * time.Millisecond})
	release := hold(t, path)
	err := l.Append(t.Context(), storetest.Grant("job", 31))
	documenttest.Says(t, "Append()", err, store.ErrNotStored, "busy: locked by another process for 20ms")
	for _, known := range []error{store.ErrConflict, store.ErrInvalid, store.ErrRefused, store.ErrDenied} {
		if errors.Is(err, known) {
			t.Errorf("Append() = %v, which is %v: want an unknown outcome", err, known)
		}
	}
	release()
	wantErr(t, "Append() after the lock was released", l.Append(t.Context(), storetest.Grant("job", 31)), nil)
}

func TestCloseWaitsForWhatWasAbandoned(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path, BusyTimeout: time.Hour})
	release := hold(t, path)
	defer release()
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			errs <- l.Append(ctx, storetest.Grant("job", 31))
		}()
	}
	for range cap(errs) {
		wantErr(t, "Append()", <-errs, context.DeadlineExceeded)
	}
	wantErr(t, "Close()", l.Close(t.Context()), nil)
}

func TestAnAppendThatStoresNothingIsNoSuccess(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("other", 1)))
	db := raw(t, path)
	execute(t, db, `CREATE TRIGGER thief BEFORE INSERT ON WorkerLeases BEGIN SELECT RAISE(IGNORE); END`)
	if err := l.Append(t.Context(), storetest.Grant("job", 31)); err == nil {
		t.Error("Append() with a trigger that drops the row = nil, want an error")
	}
	wantErr(t, "Get()", documenttest.ErrorOf(l.Get(t.Context(), "job", 31)), store.ErrNotFound)
}

func TestDamageFoundLaterIsRefused(t *testing.T) {
	path := grown(t)
	b := contentOf(t, path)
	// The pages after the schema hold the records.
	for i := 4096; i < len(b); i++ {
		b[i] = 0xa5
	}
	content(b)(t, path)
	l := open(t, Options{Path: path})
	_, _, err := l.Tail(t.Context(), "job", 1)
	documenttest.Says(t, "Tail() of a damaged table", err, store.ErrRefused, "corrupt")
}

func TestAppendsAreSyncedAndLogged(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path})
	must(t, "Init()", l.Init(t.Context()))
	var mode string
	var synchronous int
	row := l.file.db.QueryRowContext(t.Context(), "SELECT journal_mode, synchronous FROM pragma_journal_mode, pragma_synchronous")
	if err := row.Scan(&mode, &synchronous); err != nil || mode != "wal" || synchronous != 2 {
		t.Errorf("journal_mode, synchronous = %s, %d (%v), want wal, 2", mode, synchronous, err)
	}
	if err := l.file.db.QueryRowContext(t.Context(), "SELECT 1 FROM pragma_table_list WHERE name = 'WorkerLeases' AND strict AND wr").Scan(new(int)); errors.Is(err, sql.ErrNoRows) {
		t.Error("WorkerLeases isn't STRICT and WITHOUT ROWID")
	}
}
