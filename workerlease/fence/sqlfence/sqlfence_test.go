package sqlfence_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/sqlfence"
)

func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "a.db")+"?_pragma=busy_timeout(30000)&_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, s := range []string{sqlfence.Schema(sqlfence.SQLite), "CREATE TABLE writes (id INTEGER PRIMARY KEY, token INTEGER)"} {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func insert(ctx context.Context, token int64) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO writes (token) VALUES (?)", token)
		return err
	}
}

// tokens returns the tokens of all writes, in the order of their commits.
func tokens(t *testing.T, db *sql.DB) (found []int64) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT token FROM writes ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var token int64
		if err := rows.Scan(&token); err != nil {
			t.Fatal(err)
		}
		found = append(found, token)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func ordered(found []int64) bool {
	for i := 1; i < len(found); i++ {
		if found[i] < found[i-1] {
			return false
		}
	}
	return true
}

func TestAStaleTokenIsRefused(t *testing.T) {
	db, ctx := open(t), t.Context()
	do := func(token int64) error {
		return sqlfence.Do(ctx, db, sqlfence.SQLite, "a", token, insert(ctx, token))
	}
	for _, token := range []int64{1, 1, 2} {
		if err := do(token); err != nil {
			t.Fatal(err)
		}
	}
	var stale *fence.StaleError
	if err := do(1); !errors.As(err, &stale) || *stale != (fence.StaleError{Name: "a", Token: 1, Newest: 2}) {
		t.Errorf("a stale write: %v", err)
	}
	if found := tokens(t, db); len(found) != 3 || !ordered(found) {
		t.Errorf("writes: %v", found)
	}
	if err := sqlfence.Do(ctx, db, sqlfence.SQLite, "b", 1, insert(ctx, 1)); err != nil {
		t.Errorf("another fence: %v", err)
	}
}

func TestAFailedWriteDoesntRaiseTheFence(t *testing.T) {
	db, ctx := open(t), t.Context()
	broken := errors.New("broken")
	err := sqlfence.Do(ctx, db, sqlfence.SQLite, "a", 2, func(tx *sql.Tx) error {
		return errors.Join(broken, insert(ctx, 2)(tx))
	})
	if !errors.Is(err, broken) {
		t.Errorf("Do() = %v", err)
	}
	if newest, err := sqlfence.NewStore(db, sqlfence.SQLite).Raise(ctx, "a", 1); newest != 1 || err != nil {
		t.Errorf("Raise(1) = %d, %v", newest, err)
	}
	if found := tokens(t, db); len(found) != 0 {
		t.Errorf("writes: %v", found)
	}
}

// A lease that ends rolls its transaction back, and who uses that is told "transaction has already been committed or rolled back".
func TestTheEndOfALeaseIsTheReasonOfItsError(t *testing.T) {
	db := open(t)
	ctx, end := context.WithCancel(t.Context())
	err := sqlfence.Do(ctx, db, sqlfence.SQLite, "a", 2, func(tx *sql.Tx) error {
		end()
		for {
			if err := insert(context.Background(), 2)(tx); err != nil {
				return err
			}
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Do() = %v, want that its context has ended", err)
	}
	if found := tokens(t, db); len(found) != 0 {
		t.Errorf("writes: %v", found)
	}
}

// Where another transaction keeps SQLite's lock, one that begins with it is told that this is locked, after its lease has ended.
func TestTheEndOfALeaseIsTheReasonWhyItsWriteDidNotBegin(t *testing.T) {
	suites.RealTime(t)
	path := "file:" + filepath.Join(t.TempDir(), "a.db") + "?_pragma=busy_timeout(200)&_txlock=immediate"
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	ctx, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if err := sqlfence.Do(ctx, db, sqlfence.SQLite, "a", 2, insert(ctx, 2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Do() = %v, want that its context has ended", err)
	}
}

func TestInvalidArguments(t *testing.T) {
	db, ctx := open(t), t.Context()
	for _, test := range []struct {
		dialect sqlfence.Dialect
		name    string
		token   int64
	}{{0, "a", 1}, {sqlfence.SQLite, "", 1}, {sqlfence.SQLite, "a", 0}} {
		if err := sqlfence.Do(ctx, db, test.dialect, test.name, test.token, insert(ctx, 1)); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("%v: %v", test, err)
		}
	}
	if found := tokens(t, db); len(found) != 0 {
		t.Errorf("writes: %v", found)
	}
}

// The check and the write are two transactions, and a newer holder writes between them.
// That the order is broken then shows that the tests here would notice.
func TestACheckApartFromTheWriteIsNotEnough(t *testing.T) {
	db, ctx := open(t), t.Context()
	if newest, err := sqlfence.NewStore(db, sqlfence.SQLite).Raise(ctx, "a", 1); newest != 1 || err != nil {
		t.Fatal(newest, err)
	}
	if err := sqlfence.Do(ctx, db, sqlfence.SQLite, "a", 2, insert(ctx, 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "INSERT INTO writes (token) VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if found := tokens(t, db); ordered(found) {
		t.Errorf("writes in order: %v", found)
	}
}

// A new holder whose check comes while an old one's transaction is open waits for it.
func TestAnOpenTransactionIsWaitedFor(t *testing.T) {
	db, ctx := open(t), t.Context()
	second := make(chan error, 1)
	err := sqlfence.Do(ctx, db, sqlfence.SQLite, "a", 1, func(tx *sql.Tx) error {
		go func() { second <- sqlfence.Do(ctx, db, sqlfence.SQLite, "a", 2, insert(ctx, 2)) }()
		return insert(ctx, 1)(tx)
	})
	if err := errors.Join(err, <-second); err != nil {
		t.Fatal(err)
	}
	if found := tokens(t, db); len(found) != 2 || !ordered(found) {
		t.Errorf("writes: %v", found)
	}
}

func TestManyHolders(t *testing.T) {
	db, ctx := open(t), t.Context()
	var all sync.WaitGroup
	order := rand.Perm(40)
	for _, i := range order {
		token := int64(i/2 + 1)
		all.Go(func() {
			err := sqlfence.Do(ctx, db, sqlfence.SQLite, "a", token, insert(ctx, token))
			if err != nil && !errors.Is(err, fence.ErrStale) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if found := tokens(t, db); !ordered(found) || len(found) == 0 || found[len(found)-1] != 20 {
		t.Errorf("writes: %v, begun in the order %v", found, order)
	}
}
