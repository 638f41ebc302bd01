//go:build linux

package main

import (
	"context"
	"database/sql"

	_ "modernc.org/sqlite" // registers the driver
)

// sqliteFence is a table to which one statement appends, or doesn't.
type sqliteFence struct{ db *sql.DB }

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

func openSQLiteFence(ctx context.Context, path string) (fence, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, createWrites); err != nil {
		_ = db.Close()
		return nil, err
	}
	return sqliteFence{db}, nil
}

func (f sqliteFence) write(ctx context.Context, workerType string, token int64) (bool, error) {
	r, err := f.db.ExecContext(ctx, insertWrite, workerType, token)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

func (f sqliteFence) writes(ctx context.Context, workerType string) (tokens []int64, err error) {
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

func (f sqliteFence) close(context.Context) { _ = f.db.Close() }
