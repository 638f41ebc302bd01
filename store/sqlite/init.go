package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
)

const (
	// applicationID marks the file in its header: "slot" in ASCII.
	applicationID = 0x736c6f74
	// schemaVersion is the user_version in the header.
	schemaVersion = 1
	// primaryKey is what the safety of a ledger rests on.
	primaryKey = "workerType,seq"
)

// The statements on WorkerLeases and Boot.
var (
	createLeases  = createStatement()
	insertRecord  = insertStatement()
	selectOne     = "SELECT " + readColumns() + ` FROM WorkerLeases WHERE workerType = ?1 AND seq = ?2`
	selectTail    = "SELECT " + readColumns() + ` FROM WorkerLeases WHERE workerType = ?1 AND seq BETWEEN 1 AND ?2 ORDER BY seq DESC LIMIT ?3`
	selectVersion = `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema),
		(SELECT group_concat(name, ',') FROM (SELECT name FROM pragma_table_info('WorkerLeases') WHERE pk > 0 ORDER BY pk))
		FROM pragma_application_id, pragma_user_version`
)

const (
	createBoot   = `CREATE TABLE Boot (id TEXT NOT NULL PRIMARY KEY, wallOffset INTEGER NOT NULL) STRICT, WITHOUT ROWID`
	insertOffset = `INSERT OR IGNORE INTO Boot (id, wallOffset) VALUES (?1, ?2)`
	selectOffset = `SELECT (SELECT wallOffset FROM Boot WHERE id = ?1)`
	selectStray  = `SELECT coalesce(
		(SELECT max(seq) FROM WorkerLeases WHERE workerType = ?1 AND seq > ?2),
		(SELECT min(seq) FROM WorkerLeases WHERE workerType = ?1 AND seq < 1))`
	// The head is the newest key that can be followed, not a stray above it.
	deleteOldest = `DELETE FROM WorkerLeases WHERE workerType = ?1 AND seq IN (
		SELECT seq FROM WorkerLeases WHERE workerType = ?1 AND seq < min(?3,
			(SELECT max(seq) FROM WorkerLeases WHERE workerType = ?1 AND seq BETWEEN 1 AND ?2))
		ORDER BY seq LIMIT ?4)`
	// A plain DISTINCT would read the whole table; this hops from type to type.
	selectTypes = `WITH RECURSIVE hop(name) AS (
		SELECT min(workerType) FROM WorkerLeases
		UNION ALL
		SELECT (SELECT min(workerType) FROM WorkerLeases WHERE workerType > name) FROM hop WHERE name IS NOT NULL)
		SELECT name FROM hop WHERE name IS NOT NULL`
)

func createStatement() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE WorkerLeases (")
	for _, c := range columns {
		fmt.Fprintf(&b, "%q %s, ", c.name, c.kind)
	}
	b.WriteString("PRIMARY KEY (" + primaryKey + ")) STRICT, WITHOUT ROWID")
	return b.String()
}

func insertStatement() string {
	names, values := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], values[i] = fmt.Sprintf("%q", c.name), "?"
	}
	return "INSERT INTO WorkerLeases (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")"
}

// readColumns selects all columns. A text that no record may have, such as
// 16 MB of metadata, is not loaded: its negated size takes its place.
func readColumns() string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = fmt.Sprintf("%q", c.name)
		if c.kind == "TEXT" {
			names[i] = fmt.Sprintf("iif(octet_length(%[1]q) > %[2]d, -octet_length(%[1]q), %[1]q)", c.name, store.MaxMetadata)
		}
	}
	return strings.Join(names, ", ")
}

// Init creates the file and its tables. It changes nothing that is there.
func (l *Ledger) Init(ctx context.Context) error {
	_, err := do(ctx, l, "init", l.o.Path, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.write(ctx, func(*file) error { return nil })
	})
	return err
}

// create makes a ledger of a file that is missing or empty, in one transaction,
// so that of two processes that create it at once one waits for the other and
// nobody ever sees half a ledger. WAL mode comes later: by then the file itself,
// not only its log, says what it is.
func create(ctx context.Context, path string) (err error) {
	db, err := connect(path, "mode=rwc")
	if err != nil {
		return err
	}
	defer func() {
		if e := db.Close(); err == nil {
			err = e
		}
	}()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	// An unfinished transaction is rolled back by closing its connection.
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	found, err := identify(ctx, conn)
	if err != nil || found == isLedger {
		return err
	}
	for _, statement := range []string{
		createLeases,
		createBoot,
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", schemaVersion),
		"COMMIT",
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
