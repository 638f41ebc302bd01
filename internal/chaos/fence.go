//go:build linux

package main

import (
	"context"
	"database/sql"
	"fmt"

	_ "modernc.org/sqlite" // registers the driver
)

// A fence completes a lease: the resource remembers the highest token that it has seen,
// and refuses lower ones. Here the resource is a list of numbered writes for each worker
// type, in a separate SQLite file that no fault strikes, whatever store has the leases.
type fence struct{ db *sql.DB }

const (
	createWrites = `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
		CREATE TABLE IF NOT EXISTS writes (workerType TEXT NOT NULL, n INTEGER NOT NULL, token INTEGER NOT NULL, PRIMARY KEY (workerType, n)) STRICT, WITHOUT ROWID`
	// The newest write has the highest token, since each was at least as high as
	// the one before.
	insertWrite = `INSERT INTO writes SELECT ?1, n + 1, ?2 FROM (
			SELECT coalesce(max(n), 0) AS n FROM writes WHERE workerType = ?1)
		WHERE ?2 >= coalesce((SELECT token FROM writes WHERE workerType = ?1 ORDER BY n DESC LIMIT 1), 0)`
	selectWrites = `SELECT token FROM writes WHERE workerType = ?1 ORDER BY n`
)

// openFence opens the fence in a file, and makes it if it is not there.
func openFence(ctx context.Context, path string) (*fence, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, createWrites); err != nil {
		_ = db.Close()
		return nil, err
	}
	return &fence{db}, nil
}

func (f *fence) close() { _ = f.db.Close() }

// write appends a write, unless one with a higher token is there.
func (f *fence) write(ctx context.Context, workerType string, token int64) (accepted bool, err error) {
	r, err := f.db.ExecContext(ctx, insertWrite, workerType, token)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// writes returns the tokens of all writes, in the order of acceptance.
func (f *fence) writes(ctx context.Context, workerType string) (tokens []int64, err error) {
	rows, err := f.db.QueryContext(ctx, selectWrites, workerType)
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
