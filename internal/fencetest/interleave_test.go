//go:build linux

package fencetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/sqlfence"
)

const name = "a" // of the fence

// write checks and inserts in tx.
func (p *peer) write(ctx context.Context, tx *sql.Tx, token int64) error {
	if err := sqlfence.Check(ctx, tx, p.dialect, name, token); err != nil {
		return err
	}
	return insert(ctx, tx, name, token)
}

// begin begins a transaction that has read something, so that its snapshot is taken. It
// is rolled back when the test ends, at the latest.
func (p *peer) begin(t *testing.T, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := p.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	must(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	var n int
	must(t, tx.QueryRowContext(t.Context(), "SELECT count(*) FROM bystander").Scan(&n))
	return tx
}

// finish ends a transaction whose check and insert returned err: it commits, or begins
// anew once where the database asks for that.
func (p *peer) finish(t *testing.T, tx *sql.Tx, level sql.IsolationLevel, token int64, err error) error {
	t.Helper()
	if err == nil {
		return tx.Commit()
	}
	if e := tx.Rollback(); e != nil {
		t.Fatal(e)
	}
	if !beginAnew(err) {
		return err
	}
	if errors.Is(err, fence.ErrStale) {
		t.Errorf("%v asks to begin anew, and says that the token is stale", err)
	}
	tx = p.begin(t, level)
	err = p.write(t.Context(), tx, token)
	if beginAnew(err) {
		t.Fatalf("nobody else writes, but %v", err)
	}
	return p.finish(t, tx, level, token, err)
}

// isStale fails the test unless err is the refusal of token.
func isStale(t *testing.T, err error, token, newest int64) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.As(err, &stale) || *stale != (fence.StaleError{Name: name, Token: token, Newest: newest}) {
		t.Errorf("token %d after %d: %v", token, newest, err)
	}
}

// cases runs a test on each database, at each level, on a fence that is known or that is
// used for the first time.
func cases(t *testing.T, test func(t *testing.T, p *peer, level sql.IsolationLevel)) {
	each(t, func(t *testing.T, p *peer) {
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			for _, known := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, known %v", level, known), func(t *testing.T) {
					for _, s := range []string{"DELETE FROM lease_fences", "DELETE FROM writes"} {
						if _, err := p.ExecContext(t.Context(), s); err != nil {
							t.Fatal(err)
						}
					}
					if known {
						if n, err := sqlfence.NewStore(p.DB, p.dialect).Raise(t.Context(), name, 1); n != 1 || err != nil {
							t.Fatal(n, err)
						}
					}
					test(t, p, level)
				})
			}
		}
	})
}

// strict reports whether a transaction of the level that finds its fence changed must
// begin anew. InnoDB reads the newest row where it locks one, at each level.
func (p *peer) strict(level sql.IsolationLevel) bool {
	return p.dialect == sqlfence.PostgreSQL && level != sql.LevelReadCommitted
}

// The stale holder's snapshot is older than the newer one's write.
func TestAStaleWriterComesAfterTheNewer(t *testing.T) {
	cases(t, func(t *testing.T, p *peer, level sql.IsolationLevel) {
		stale, newer := p.begin(t, level), p.begin(t, level)
		must(t, errors.Join(p.write(t.Context(), newer, 3), newer.Commit()))
		err := p.write(t.Context(), stale, 2)
		if beginAnew(err) != p.strict(level) {
			t.Errorf("the first try: %v", err)
		}
		isStale(t, p.finish(t, stale, level, 2, err), 2, 3)
		p.wrote(t, name, 3)
	})
}

// overtake lets a writer wait for another one's open transaction, which end then ends.
// It returns what became of the writer.
func (p *peer) overtake(t *testing.T, level sql.IsolationLevel, opened, waiting int64, end func(*sql.Tx) error) error {
	t.Helper()
	first, second := p.begin(t, level), p.begin(t, level)
	must(t, p.write(t.Context(), first, opened))
	result := make(chan error, 1)
	go func() { result <- p.write(t.Context(), second, waiting) }()
	p.awaitWaiter(t)
	must(t, end(first))
	return p.finish(t, second, level, waiting, <-result)
}

func TestANewerWriterWaitsForTheOlder(t *testing.T) {
	cases(t, func(t *testing.T, p *peer, level sql.IsolationLevel) {
		must(t, p.overtake(t, level, 2, 3, (*sql.Tx).Commit))
		p.wrote(t, name, 2, 3)
	})
}

func TestAStaleWriterWaitsForTheNewer(t *testing.T) {
	cases(t, func(t *testing.T, p *peer, level sql.IsolationLevel) {
		isStale(t, p.overtake(t, level, 3, 2, (*sql.Tx).Commit), 2, 3)
		p.wrote(t, name, 3)
	})
}

func TestARollbackLeavesTheOldToken(t *testing.T) {
	cases(t, func(t *testing.T, p *peer, level sql.IsolationLevel) {
		must(t, p.overtake(t, level, 3, 2, (*sql.Tx).Rollback))
		p.wrote(t, name, 2)
		if n, err := sqlfence.NewStore(p.DB, p.dialect).Raise(t.Context(), name, 1); n != 2 || err != nil {
			t.Errorf("the fence has %d, %v", n, err)
		}
	})
}

func TestAFenceOutlivesTheRowsItProtects(t *testing.T) {
	each(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		do := func(token int64, statement string) error {
			return sqlfence.Do(ctx, p.DB, p.dialect, name, token, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, statement)
				return err
			})
		}
		const write = "INSERT INTO writes (name, token) VALUES ('a', 0)"
		must(t, errors.Join(do(1, write), do(2, "DELETE FROM writes")))
		isStale(t, do(1, write), 1, 2)
		p.wrote(t, name)
	})
}

// Names that differ in their case, or at their end, are different fences.
func TestNamesAreComparedByTheByte(t *testing.T) {
	each(t, func(t *testing.T, p *peer) {
		store := sqlfence.NewStore(p.DB, p.dialect)
		for i, other := range []string{"é", "É", "e", "E", "e "} {
			token := int64(9 - i)
			if n, err := store.Raise(t.Context(), other, token); n != token || err != nil {
				t.Errorf("%q: %d, %v", other, n, err)
			}
		}
	})
}

func TestManyWriters(t *testing.T) {
	cases(t, func(t *testing.T, p *peer, level sql.IsolationLevel) {
		p.SetMaxOpenConns(10)
		write := func(token int64) error {
			tx, err := p.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
			if err != nil {
				return err
			}
			if err := p.write(t.Context(), tx, token); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		}
		var all sync.WaitGroup
		for _, i := range rand.Perm(40) {
			all.Go(func() {
				err := write(int64(i/2 + 1))
				for beginAnew(err) {
					err = write(int64(i/2 + 1))
				}
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		found := p.tokens(t, "writes", name, "id")
		for i := 1; i < len(found); i++ {
			if found[i] < found[i-1] {
				t.Fatalf("the tokens of the writes are %v", found)
			}
		}
		if len(found) == 0 || found[len(found)-1] != 20 {
			t.Errorf("the tokens of the writes are %v", found)
		}
	})
}
