package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/workerlease/fence"
)

// Dialect is the kind of database. The zero value is none.
type Dialect int

// The dialects differ only in placeholders and in the upsert.
const (
	PostgreSQL Dialect = iota + 1 // 9.5 or newer
	SQLite                        // 3.35 or newer
	MySQL                         // 5.7 or newer, or MariaDB; with InnoDB
)

// statements of a dialect. Where read is empty, raise returns the newest token.
type statements struct{ schema, raise, read string }

func (d Dialect) statements() (statements, error) {
	switch d {
	case PostgreSQL:
		return statements{
			schema: `CREATE TABLE IF NOT EXISTS lease_fences (name text PRIMARY KEY, token bigint NOT NULL)`,
			raise: `INSERT INTO lease_fences (name, token) VALUES ($1, $2) ON CONFLICT (name)
				DO UPDATE SET token = GREATEST(lease_fences.token, excluded.token) RETURNING token`,
		}, nil
	case SQLite:
		return statements{
			schema: `CREATE TABLE IF NOT EXISTS lease_fences (name TEXT PRIMARY KEY, token INTEGER NOT NULL)`,
			raise: `INSERT INTO lease_fences (name, token) VALUES (?, ?) ON CONFLICT (name)
				DO UPDATE SET token = max(lease_fences.token, excluded.token) RETURNING token`,
		}, nil
	case MySQL: // a name is binary, since text ignores case there
		return statements{
			schema: `CREATE TABLE IF NOT EXISTS lease_fences (name VARBINARY(255) PRIMARY KEY, token BIGINT NOT NULL) ENGINE = InnoDB`,
			raise:  `INSERT INTO lease_fences (name, token) VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))`,
			read:   `SELECT token FROM lease_fences WHERE name = ? FOR UPDATE`,
		}, nil
	}
	return statements{}, fmt.Errorf("sqlfence: unknown dialect %d", d)
}

// Schema returns the statement that creates the table of fences, unless it exists. It is
// empty for an unknown dialect.
func Schema(d Dialect) string {
	s, _ := d.statements()
	return s.schema
}

// Check raises the fence name to token within tx, and locks it until tx ends. If the
// fence has a higher token, Check fails with a [fence.StaleError]; roll back then. All
// other errors are the database's, or say that an argument is invalid. Two transactions
// with one token may both pass: they belong to one holder.
func Check(ctx context.Context, tx *sql.Tx, d Dialect, name string, token int64) error {
	newest, err := raise(ctx, tx, d, name, token)
	if err != nil {
		return err
	}
	return fence.Compare(name, token, newest)
}

// raise returns the highest token seen, which token itself may be.
func raise(ctx context.Context, tx *sql.Tx, d Dialect, name string, token int64) (newest int64, err error) {
	s, err := d.statements()
	if err != nil {
		return 0, err
	}
	if err := fence.Validate(name, token); err != nil {
		return 0, err
	}
	if s.read == "" {
		err = tx.QueryRowContext(ctx, s.raise, name, token).Scan(&newest)
	} else if _, err = tx.ExecContext(ctx, s.raise, name, token); err == nil {
		err = tx.QueryRowContext(ctx, s.read, name).Scan(&newest)
	}
	if err != nil {
		return 0, fmt.Errorf("raising the fence %q: %w", name, err)
	}
	return newest, nil
}

// Do runs write in a transaction of db's default isolation level that begins with a
// [Check], and commits it. Where the check or write fails, or write panics, nothing is
// stored. If the commit fails, its outcome may be unknown. If ctx ends, as a lease's does, the
// error is ctx.Err() as well, whatever the driver says.
func Do(ctx context.Context, db *sql.DB, d Dialect, name string, token int64, write func(tx *sql.Tx) error) (err error) {
	defer func() {
		if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) { // It is told by what it has ended: a transaction or connection.
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	defer func() {
		if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) && err != nil {
			err = errors.Join(err, fmt.Errorf("rolling back: %w", e))
		}
	}()
	if err := Check(ctx, tx, d, name, token); err != nil {
		return err
	}
	if err := write(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
}

// Store keeps fences in a database, for those who can't pass a transaction along, such as
// the middleware of httpfence. It may be used by many goroutines.
type Store struct {
	db      *sql.DB
	dialect Dialect
}

// NewStore returns a store of the fences in db, whose table must exist.
func NewStore(db *sql.DB, d Dialect) *Store { return &Store{db: db, dialect: d} }

// Raise raises the fence name to token, in a transaction of its own, and returns the
// highest token seen. A stale token is no error.
func (s *Store) Raise(ctx context.Context, name string, token int64) (newest int64, err error) {
	err = Do(ctx, s.db, s.dialect, name, token, func(*sql.Tx) error { return nil })
	var stale *fence.StaleError
	if errors.As(err, &stale) {
		return stale.Newest, nil
	}
	if err != nil {
		return 0, err
	}
	return token, nil
}
