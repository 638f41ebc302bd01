//go:build unix

package late_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/sqlfence"
)

const (
	pgWrites     = "CREATE TABLE writes (id bigserial PRIMARY KEY, token bigint)"
	pgInsert     = "INSERT INTO writes (token) VALUES ($1)"
	notPermitted = "40001" // serialization_failure
)

// holder is a holder's transaction.
type holder struct {
	*sql.Tx
	t     *testing.T
	token int64
}

func begin(t *testing.T, db *sql.DB, level sql.IsolationLevel, token int64) holder {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return holder{tx, t, token}
}

// check is sqlfence.Check, and the write after it.
func (h holder) check(name string) error {
	if err := sqlfence.Check(h.t.Context(), h.Tx, sqlfence.PostgreSQL, name, h.token); err != nil {
		return err
	}
	_, err := h.ExecContext(h.t.Context(), pgInsert, h.token)
	return err
}

func failed(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == notPermitted
}

// Of two holders whose transactions overlap, the second waits for the first, whatever the order of
// their tokens, whether the fence is new, and how the first ends. It is told at the level that the
// application chose whether its token is stale or its transaction is to begin anew.
func TestOverlappingTransactionsOnPostgreSQL(t *testing.T) {
	db := connect(t, postgres(t))
	create(t, db, sqlfence.Schema(sqlfence.PostgreSQL), pgWrites)
	for name, level := range map[string]sql.IsolationLevel{
		"read committed": sql.LevelReadCommitted, "repeatable read": sql.LevelRepeatableRead, "serializable": sql.LevelSerializable,
	} {
		for _, c := range []struct {
			name          string
			seen          int64 // the fence's token before; 0: it is new
			first, second int64
			rollback      bool // of the first
			stale         bool // the second
		}{
			{"a newer holder comes second", 0, 1, 2, false, false},
			{"an older holder comes second", 0, 2, 1, false, true},
			{"a newer holder comes second, to a fence that is there", 1, 2, 3, false, false},
			{"an older holder comes second, to a fence that is there", 1, 3, 2, false, true},
			{"the first is rolled back", 0, 2, 1, true, false},
			{"the first is rolled back, and the fence is there", 1, 3, 2, true, false},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				create(t, db, "TRUNCATE lease_fences, writes")
				if c.seen > 0 {
					if _, err := sqlfence.NewStore(db, sqlfence.PostgreSQL).Raise(t.Context(), "a", c.seen); err != nil {
						t.Fatal(err)
					}
				}
				first, second := begin(t, db, level, c.first), begin(t, db, level, c.second)
				if err := first.check("a"); err != nil {
					t.Fatal(err)
				}
				outcome := make(chan error, 1)
				go func() { outcome <- second.check("a") }()
				waiting(t, db)
				end, want := first.Commit, []int64{c.first, c.second}
				if c.rollback {
					end, want = first.Rollback, []int64{c.second}
				}
				if c.stale {
					want = []int64{c.first}
				}
				if err := end(); err != nil {
					t.Fatal(err)
				}
				err := <-outcome
				if failed(err) && !c.rollback && level != sql.LevelReadCommitted {
					_ = second.Rollback()
					second = begin(t, db, level, c.second)
					err = second.check("a")
				}
				switch {
				case c.stale && !errors.Is(err, fence.ErrStale) || !c.stale && err != nil:
					t.Errorf("the second: %v; stale is %v", err, c.stale)
				case err == nil:
					if err := second.Commit(); err != nil {
						t.Error(err)
					}
				}
				_ = second.Rollback()
				if got := tokens(t, db); !slices.Equal(got, want) {
					t.Errorf("writes %v, want %v", got, want)
				}
			})
		}
	}
}

// Many holders at once, at the level with the most freedom and that with the least: those that are told to
// begin anew do.
func TestManyHoldersOnPostgreSQL(t *testing.T) {
	source := postgres(t)
	for name, level := range map[string]string{"read committed": "read\\ committed", "serializable": "serializable"} {
		t.Run(name, func(t *testing.T) {
			db := connect(t, source+" default_transaction_isolation="+level)
			create(t, db, "DROP TABLE IF EXISTS lease_fences, writes", sqlfence.Schema(sqlfence.PostgreSQL), pgWrites)
			db.SetMaxOpenConns(16)
			var all sync.WaitGroup
			const most = 60
			for i := range 2 * most {
				token := int64((i*37)%most + 1)
				all.Go(func() {
					for {
						err := sqlfence.Do(t.Context(), db, sqlfence.PostgreSQL, "a", token, func(tx *sql.Tx) error {
							_, err := tx.ExecContext(context.WithoutCancel(t.Context()), pgInsert, token)
							return err
						})
						if failed(err) {
							continue
						}
						if err != nil && !errors.Is(err, fence.ErrStale) {
							t.Error(err)
						}
						return
					}
				})
			}
			all.Wait()
			if got := tokens(t, db); !slices.IsSorted(got) || len(got) == 0 || got[len(got)-1] != most {
				t.Errorf("writes %v, want them in the order of their tokens, up to %d", got, most)
			}
		})
	}
}
