//go:build linux

package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
	stalefence "github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/sqlfence"
)

// lockCommand is the argument that makes this program hold the file's write lock until
// its standard input ends: lock PATH, or lock PATH dirty.
const lockCommand = "lock"

// uncommitted is the worker type of the records that are never committed.
const uncommitted = "never"

// sqliteBackend is one file, shared by all workers.
type sqliteBackend struct {
	dir  string
	self string
	busy sync.Mutex // held while the file is struck
}

func (s *sqliteBackend) path() string                   { return filepath.Join(s.dir, "leases.db") }
func (s *sqliteBackend) address(workerType, int) string { return "sqlite:" + s.path() }

func (s *sqliteBackend) strike(f fault, _ workerType, _ int) (func() error, error) {
	if !s.busy.TryLock() {
		return nil, nil
	}
	args := []string{lockCommand, s.path()}
	if f.Kind == killWriter {
		args = append(args, "dirty")
	}
	c := exec.Command(s.self, args...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := start(c); err != nil {
		return nil, err
	}
	undo := func() error {
		defer s.busy.Unlock()
		if f.Kind == killWriter {
			_ = c.Process.Kill()
		}
		_ = in.Close()
		err := c.Wait()
		if f.Kind == killWriter {
			return nil
		}
		return err
	}
	// Another process may hold the lock, such as a leasectl that is stopped just then.
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		_ = undo()
		return nil, nil
	}
	return undo, nil
}

func (s *sqliteBackend) open(ctx context.Context, _ workerType) (store.Ledger, error) {
	return sqlite.Open(ctx, sqlite.Options{Path: s.path()})
}

func (s *sqliteBackend) close() {}

// holdLock is the process that holds the lock.
func holdLock(path string, dirty bool) error {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=rw")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	statements := []string{"PRAGMA busy_timeout = 10000", "BEGIN IMMEDIATE"}
	if dirty {
		// More than the cache holds, so that pages get into the file's log.
		statements = append(statements, "PRAGMA cache_size = 5", "CREATE TEMP TABLE one AS SELECT * FROM WorkerLeases LIMIT 1",
			"UPDATE one SET workerType = '"+uncommitted+"', seq = 0, metadata = printf('%.4000c', 'x')")
		for range 200 {
			statements = append(statements, "UPDATE one SET seq = seq + 1", "INSERT INTO WorkerLeases SELECT * FROM one")
		}
	}
	for _, text := range statements {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	if _, err := fmt.Println("locked"); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	_, err = conn.ExecContext(context.Background(), "ROLLBACK")
	return errors.Join(err, conn.Close())
}

// fence is a resource that refuses stale tokens, as users' databases do by package sqlfence. Here it is a list of writes
// in a separate SQLite file that no fault strikes, whatever store has the leases.
type fence struct{ db *sql.DB }

// openFence opens the fence in a file, and makes it if it is not there.
func openFence(ctx context.Context, path string) (*fence, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, text := range []string{
		sqlfence.Schema(sqlfence.SQLite),
		"CREATE TABLE IF NOT EXISTS writes (n INTEGER PRIMARY KEY, workerType TEXT NOT NULL, token INTEGER NOT NULL)",
	} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return &fence{db}, nil
}

func (f *fence) close() { _ = f.db.Close() }

// write appends a write, unless one with a higher token is there.
func (f *fence) write(ctx context.Context, workerType string, token int64) (accepted bool, err error) {
	err = sqlfence.Do(ctx, f.db, sqlfence.SQLite, workerType, token, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO writes (workerType, token) VALUES (?, ?)", workerType, token)
		return err
	})
	if errors.Is(err, stalefence.ErrStale) {
		return false, nil
	}
	return err == nil, err
}

// writes returns the tokens of all writes, in the order of acceptance.
func (f *fence) writes(ctx context.Context, workerType string) (tokens []int64, err error) {
	rows, err := f.db.QueryContext(ctx, "SELECT token FROM writes WHERE workerType = ? ORDER BY n", workerType)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var token int64
		if err := rows.Scan(&token); err != nil {
			return nil, err
		}
		tokens = append(tokens, token)
	}
	return tokens, rows.Err()
}

// staleWrites finds accepted writes whose token is lower than the one before.
func staleWrites(workerType string, tokens []int64) (wrong []string) {
	for i := 1; i < len(tokens); i++ {
		if tokens[i] < tokens[i-1] {
			wrong = append(wrong, fmt.Sprintf("%s: write %d was accepted with token %d after one with %d", workerType, i+1, tokens[i], tokens[i-1]))
		}
	}
	return wrong
}
