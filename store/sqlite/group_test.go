package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestAppendsThatGatheredAreOneTransaction(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 1, 300: 1, maxGroup: 1, maxGroup + 1: 2, 2*maxGroup + 200: 3} {
		l, commits := inUse(t, Options{BusyTimeout: time.Hour})
		release := hold(t, l.o.Path)
		all := gathering(t, l, ofTypes(n), always(t))
		release()
		for i, err := range outcomes(t, all, n) {
			wantErr(t, fmt.Sprintf("Append() %d of %d", i, n), err, nil)
		}
		documenttest.Equal(t, fmt.Sprintf("transactions of %d appends", n), commits(), want)
		types, err := open(t, Options{Path: l.o.Path}).WorkerTypes(t.Context())
		must(t, "WorkerTypes()", err)
		documenttest.Equal(t, "worker types", len(types), n+1)
	}
}

// One key is taken, and two appends want another.
func TestAConflictInAGroupFailsNoOther(t *testing.T) {
	l, commits := inUse(t, Options{BusyTimeout: time.Hour})
	records := append(ofTypes(20), storetest.Grant("first", 1), storetest.Grant("job7", 1))
	records[21].Claim = "another"
	release := hold(t, l.o.Path)
	all := gathering(t, l, records, always(t))
	release()
	errs := outcomes(t, all, len(records))
	wantErr(t, "Append() to a key that was taken", errs[20], store.ErrConflict)
	lost := 21
	if errs[7] != nil {
		lost = 7
	}
	wantErr(t, "Append() of the other that wants a key", errs[lost], store.ErrConflict)
	for i, err := range errs {
		if i != lost && i != 20 {
			wantErr(t, fmt.Sprint("Append() ", i), err, nil)
			got, err := l.Get(t.Context(), records[i].WorkerType, 1)
			must(t, "Get()", err)
			documenttest.Equal(t, "claim", got.Claim, records[i].Claim)
		}
	}
	documenttest.Equal(t, "transactions", commits(), 1)
}

func TestAGroupThatConflictsAltogetherWritesNothing(t *testing.T) {
	l, commits := inUse(t, Options{BusyTimeout: time.Hour})
	release := hold(t, l.o.Path)
	all := gathering(t, l, []store.Record{storetest.Grant("first", 1), storetest.Grant("first", 1)}, always(t))
	release()
	for _, err := range outcomes(t, all, 2) {
		wantErr(t, "Append()", err, store.ErrConflict)
	}
	documenttest.Equal(t, "transactions", commits(), 0)
}

// Those whose contexts end while they wait are stored neither then nor later.
func TestAContextThatEndsTakesItsAppendOutOfTheGroup(t *testing.T) {
	l, commits := inUse(t, Options{BusyTimeout: time.Hour})
	ended, end := context.WithCancel(t.Context())
	release := hold(t, l.o.Path)
	all := gathering(t, l, ofTypes(40), func(i int) context.Context {
		if i%2 == 0 {
			return ended
		}
		return t.Context()
	})
	end()
	for range 20 {
		o := <-all
		wantErr(t, "Append() whose context ended", o.err, context.Canceled)
		documenttest.Equal(t, "append", o.of%2, 0)
	}
	release()
	for range 20 {
		wantErr(t, "Append()", (<-all).err, nil)
	}
	documenttest.Equal(t, "transactions", commits(), 1)
	must(t, "Close()", l.Close(t.Context()))
	for i, r := range ofTypes(40) {
		want := error(nil)
		if i%2 == 0 {
			want = store.ErrNotFound
		}
		wantErr(t, "Get()", documenttest.ErrorOf(open(t, Options{Path: l.o.Path}).Get(t.Context(), r.WorkerType, 1)), want)
	}
}

// afterCommit does something before the first look at the log that follows a commit.
func afterCommit(t *testing.T, l *Ledger, commits func() int, act func()) {
	t.Helper()
	once := sync.OnceFunc(act)
	disk.mu.Lock()
	defer disk.mu.Unlock()
	disk.looked = func(at string) {
		if at == l.o.Path+"-wal" && commits() > 0 {
			once()
		}
	}
	t.Cleanup(func() {
		disk.mu.Lock()
		defer disk.mu.Unlock()
		disk.looked = nil
	})
}

// What is in the transaction is stored, as it would be if it were alone.
func TestAContextThatEndsDuringACommitHarmsNoOtherAppend(t *testing.T) {
	l, commits := inUse(t, Options{BusyTimeout: time.Hour})
	ended, end := context.WithCancel(t.Context())
	release := hold(t, l.o.Path)
	all := gathering(t, l, ofTypes(10), func(i int) context.Context {
		if i == 3 {
			return ended
		}
		return t.Context()
	})
	free := make(chan struct{})
	afterCommit(t, l, commits, func() { end(); <-free })
	release()
	o := <-all
	documenttest.Equal(t, "append that returns during the commit", o.of, 3)
	wantErr(t, "Append() whose context ended", o.err, context.Canceled)
	close(free)
	for range 9 {
		wantErr(t, "Append()", (<-all).err, nil)
	}
	must(t, "Get() of the append that was abandoned", documenttest.ErrorOf(l.Get(t.Context(), "job3", 1)))
	documenttest.Equal(t, "connection closed", l.file.one.spent(), false)
	documenttest.Equal(t, "transactions", commits(), 1)
}

func TestAGroupThatIsLockedOutForTooLongStoresNothing(t *testing.T) {
	c := clock.NewMock()
	c.Set(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	l, commits := inUse(t, Options{BusyTimeout: time.Second, Clock: c})
	release := hold(t, l.o.Path)
	all := gathering(t, l, ofTypes(5), always(t))
	errs := make([]error, 0, 5)
	for len(errs) < cap(errs) {
		select {
		case o := <-all:
			errs = append(errs, o.err)
		default:
			c.Add(lastPause)
		}
	}
	for _, err := range errs {
		documenttest.Says(t, "Append()", err, store.ErrNotStored, "busy: locked by another process for 1s")
	}
	release()
	documenttest.Equal(t, "transactions", commits(), 0)
	must(t, "Append() when the lock is free", l.Append(t.Context(), storetest.Grant("job0", 1)))
}

// A trigger of another program would refuse one of the group. No part of the group is stored.
func TestATriggerRefusesAGroup(t *testing.T) {
	for what, act := range map[string]string{
		"one that drops":             "RAISE(IGNORE)",
		"one that fails":             "RAISE(ABORT, 'no')",
		"one that ends transactions": "RAISE(ROLLBACK, 'no')",
	} {
		l, commits := inUse(t, Options{BusyTimeout: time.Hour})
		db := raw(t, l.o.Path)
		db.SetMaxOpenConns(1)
		execute(t, db, "BEGIN IMMEDIATE", "CREATE TRIGGER thief BEFORE INSERT ON WorkerLeases WHEN new.workerType = 'job3' BEGIN SELECT "+act+"; END")
		all := gathering(t, l, ofTypes(10), always(t))
		execute(t, db, "COMMIT")
		for _, err := range outcomes(t, all, 10) {
			documenttest.Says(t, what+": Append()", err, store.ErrRefused, "'thief'")
		}
		documenttest.Equal(t, what+": transactions", commits(), 1) // that of the trigger
		execute(t, db, "DROP TRIGGER thief")
		must(t, "Append() without the trigger", l.Append(t.Context(), storetest.Grant("job3", 1)))
	}
}

// Where the tables were changed and are a ledger's still, the group is stored, with the statements that were
// prepared before.
func TestAHarmlessChangeOfTheTablesHoldsUpNoGroup(t *testing.T) {
	l, commits := inUse(t, Options{BusyTimeout: time.Hour})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("first", 2)))
	db := raw(t, l.o.Path)
	db.SetMaxOpenConns(1)
	execute(t, db, "BEGIN IMMEDIATE", "ALTER TABLE WorkerLeases ADD COLUMN remark TEXT")
	all := gathering(t, l, ofTypes(10), always(t))
	execute(t, db, "COMMIT")
	for _, err := range outcomes(t, all, 10) {
		wantErr(t, "Append()", err, nil)
	}
	documenttest.Equal(t, "transactions", commits(), 3)
}

// A trigger of the handle's own connection shows nowhere, and fails the transaction of the group. Then each
// append has an outcome of its own.
func TestAGroupThatFailsIsRepeatedOneByOne(t *testing.T) {
	for act, refuses := range map[string]bool{"RAISE(ABORT, 'no')": true, "RAISE(IGNORE)": true, "RAISE(ROLLBACK, 'no')": false} {
		l, commits := inUse(t, Options{BusyTimeout: time.Hour})
		execute(t, l.file.db, "CREATE TEMP TRIGGER thief BEFORE INSERT ON main.WorkerLeases WHEN new.workerType = 'job3' BEGIN SELECT "+act+"; END")
		release := hold(t, l.o.Path)
		all := gathering(t, l, ofTypes(10), always(t))
		release()
		stored := 0
		for i, err := range outcomes(t, all, 10) {
			if i != 3 {
				wantErr(t, fmt.Sprint(act, ": Append() ", i), err, nil)
			}
			if err == nil {
				stored++
			}
			_, missing := l.Get(t.Context(), fmt.Sprint("job", i), 1)
			documenttest.Equal(t, fmt.Sprint(act, ": stored ", i), missing == nil, err == nil)
		}
		// One that ends the transaction costs the connection, and with it the trigger.
		documenttest.Equal(t, act+": refused", stored == 9, refuses)
		if refuses {
			documenttest.Equal(t, act+": transactions", commits(), 9)
		}
	}
}

// What lies in a log that others don't use is stored for none, and a conflict with it is none.
func TestWhatIsFoundAfterAGroupLeavesEachOutcomeUnknown(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows removes no file that is in use")
	}
	l, commits := inUse(t, Options{BusyTimeout: time.Hour})
	release := hold(t, l.o.Path)
	records := append(ofTypes(5), storetest.Grant("job1", 1))
	all := gathering(t, l, records, always(t))
	afterCommit(t, l, commits, func() { _ = os.Remove(l.o.Path + "-wal") })
	release()
	for _, err := range outcomes(t, all, len(records)) {
		documenttest.Says(t, "Append() whose log goes meanwhile", err, ErrUnshared, "ledger.db-wal was removed")
		for _, known := range []error{store.ErrConflict, store.ErrInvalid, store.ErrRefused, store.ErrDenied, store.ErrMissing} {
			if errors.Is(err, known) {
				t.Errorf("Append() = %v, which is %v: want an unknown outcome", err, known)
			}
		}
	}
}

// As before, what has not reached the disk by then is refused, and Close waits for that.
func TestCloseLeavesNoGroupBehind(t *testing.T) {
	l, _ := inUse(t, Options{BusyTimeout: time.Hour})
	release := hold(t, l.o.Path)
	all := gathering(t, l, ofTypes(10), always(t))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = l.Close(ended)
	wantErr(t, "Append() after Close", l.Append(t.Context(), storetest.Grant("late", 1)), store.ErrClosed)
	for _, err := range outcomes(t, all, 10) {
		wantErr(t, "Append() before Close", err, store.ErrClosed)
	}
	release()
	documenttest.Equal(t, "records", asked[int](t, l.o.Path, "SELECT count(*) FROM WorkerLeases"), 1)
}

func TestAStatementIsPreparedOncePerConnection(t *testing.T) {
	l, _ := inUse(t, Options{BusyTimeout: time.Hour})
	act := func(seq int64) {
		must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", seq)))
		wantErr(t, "Append()", l.Append(t.Context(), storetest.Grant("job", seq)), store.ErrConflict)
		release := hold(t, l.o.Path)
		all := gathering(t, l, []store.Record{storetest.Grant("a", seq), storetest.Grant("b", seq)}, always(t))
		release()
		for _, err := range outcomes(t, all, 2) {
			wantErr(t, "Append() in a group", err, nil)
		}
		if got, s, err := l.Tail(t.Context(), "job", 1); err != nil || s.IsZero() || got[0].Seq != seq {
			t.Errorf("Tail() = %v, %v, %v, want Seq %d", got, s, err, seq)
		}
		must(t, "Get()", documenttest.ErrorOf(l.Get(t.Context(), "job", seq)))
		must(t, "Trim()", documenttest.ErrorOf(l.Trim(t.Context(), "job", seq)))
		must(t, "WorkerTypes()", documenttest.ErrorOf(l.WorkerTypes(t.Context())))
	}
	act(1)
	once := l.file.one.prepared.Load()
	for seq := range int64(20) {
		act(seq + 2)
	}
	documenttest.Equal(t, "statements prepared by 20 rounds more", l.file.one.prepared.Load()-once, 0)
	if most := int64(len(lasting)); once == 0 || once > most {
		t.Errorf("%d statements prepared, want 1 to %d", once, most)
	}
}
