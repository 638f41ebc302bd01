package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store"
)

const (
	// applicationID marks the file in its header: "slot" in ASCII.
	applicationID = 0x736c6f74
	// schemaVersion is the user_version in the header.
	schemaVersion = 2
	// primaryKey makes a ledger safe.
	primaryKey = "workerType,seq"
)

// The statements on WorkerLeases and Boot. SQLite plans by the value of a limit that is a parameter alone, and so
// would prepare the statement anew for each value.
var (
	createLeases  = createStatement()
	insertRecord  = insertStatement(" SELECT ", " WHERE "+guards)
	insertGuarded = insertStatement(" VALUES (", ")")
	selectOne     = queryFor(`workerType = ?1 AND seq = ?2`)
	selectPage    = queryFor(`workerType = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4 + 0`)
	selectTail    = queryTail()
	selectTails   = queryTails()
	selectVersion = `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema),
		` + selectKey("WorkerLeases") + `, encoding
		FROM pragma_application_id(), pragma_user_version(), pragma_encoding()`
)

// queryTail selects a key that can't be followed, if there is one, and the newest records: one statement takes less
// time than two. The last column is 1 for that key.
func queryTail() string {
	return `SELECT NULL, n` + strings.Repeat(", NULL", len(columns)-2) + `, 1 FROM (` + selectUnreachable + ` AS n) WHERE n IS NOT NULL
		UNION ALL SELECT *, 0 FROM (SELECT ` + readColumns() + ` FROM WorkerLeases
		WHERE workerType = ?1 AND seq BETWEEN 1 AND ?2 ORDER BY seq DESC LIMIT ?3 + 0)`
}

// selectSince selects the newest records of each valid worker type, down to the one below the
// oldest that can't be read or whose window ends after a time, and the lowest key of the type. Of
// each type it looks at so many.
var selectSince = querySince()

func querySince() string {
	return `WITH RECURSIVE ` + hop + `,
		oldest AS (SELECT name, (
			SELECT min(n) FROM (
				SELECT seq AS n, windowStart AS s, windowEnd AS e, kind AS k, claim AS c, token AS t, instanceId AS i
				FROM WorkerLeases WHERE workerType = hop.name AND seq BETWEEN 1 AND ?1 ORDER BY seq DESC LIMIT ?3)
			WHERE typeof(e) <> 'integer' OR typeof(s) <> 'integer' OR typeof(t) <> 'integer' OR k IS NULL OR c IS NULL OR i IS NULL OR e > ?2) AS n
		FROM hop WHERE name GLOB '[A-Za-z0-9]*' AND name NOT GLOB '*[^A-Za-z0-9._-]*' AND length(name) <= 63 AND name <> '` + store.Sightings + `'),
		since AS (SELECT name, (SELECT min(seq) FROM WorkerLeases WHERE workerType = oldest.name AND seq >= 1) AS firstSeq,
			coalesce((SELECT max(seq) FROM WorkerLeases WHERE workerType = oldest.name AND seq BETWEEN 1 AND oldest.n - 1), oldest.n) AS fromSeq
		FROM oldest WHERE oldest.n IS NOT NULL)
		SELECT ` + readColumns() + `, since.firstSeq FROM since JOIN WorkerLeases
		ON workerType = since.name AND seq BETWEEN since.fromSeq AND ?1 ORDER BY workerType, seq DESC`
}

const (
	createBoot   = `CREATE TABLE Boot (id TEXT NOT NULL PRIMARY KEY, wallOffset INTEGER NOT NULL) STRICT, WITHOUT ROWID`
	lockBoot     = `DELETE FROM Boot WHERE id IS NULL` // it has none
	insertLine   = `INSERT INTO Boot (id, wallOffset, madeAt) VALUES (?1, ?2, ?3)`
	selectMadeAt = `SELECT count(*) FROM pragma_table_info('Boot') WHERE name = 'madeAt' COLLATE NOCASE`
	addMadeAt    = `ALTER TABLE Boot ADD COLUMN madeAt INTEGER`
	// Before the first row, the column madeAt is that of missing. Others may have added columns of any type, and written the
	// names in other letters.
	selectLines = `SELECT id AS id, wallOffset AS wallOffset, (SELECT madeAt FROM Boot WHERE id = b.id) AS madeAt
		FROM Boot AS b, (SELECT NULL AS madeAt) AS missing`
	selectUnreachable = `SELECT coalesce(
		(SELECT max(seq) FROM WorkerLeases WHERE workerType = ?1 AND seq > ?2),
		(SELECT min(seq) FROM WorkerLeases WHERE workerType = ?1 AND seq < 1))`
	// The head is the newest key that can be followed, not an unreachable one above it. Like
	// insertRecord, it does nothing if the tables are no longer as they were.
	deleteOldest = `DELETE FROM WorkerLeases WHERE workerType = ?1 AND seq IN (
		SELECT seq FROM WorkerLeases WHERE workerType = ?1 AND seq < min(?3,
			(SELECT max(seq) FROM WorkerLeases WHERE workerType = ?1 AND seq BETWEEN 1 AND ?2))
		ORDER BY seq LIMIT ?4 + 0) AND (SELECT schema_version FROM pragma_schema_version()) = ?5`
	// A plain DISTINCT would read the whole table; this hops from type to type.
	hop = `hop(name) AS (
		SELECT min(workerType) FROM WorkerLeases
		UNION ALL
		SELECT (SELECT min(workerType) FROM WorkerLeases WHERE workerType > hop.name) FROM hop WHERE name IS NOT NULL)`
	selectTypes = `WITH RECURSIVE ` + hop + ` SELECT name FROM hop WHERE name IS NOT NULL`
	// The newest readAt of a head, up to a time.
	selectNewestRead = `WITH RECURSIVE ` + hop + `, heads AS (SELECT (
			SELECT readAt FROM WorkerLeases WHERE workerType = hop.name AND seq BETWEEN 1 AND ?1 ORDER BY seq DESC LIMIT 1) AS at FROM hop)
		SELECT max(at) FROM heads WHERE at <= ?2`
)

// creation are the statements that make an empty file a ledger.
var creation = []string{
	createLeases,
	createBoot,
	createRoster,
	fmt.Sprintf("PRAGMA application_id = %d", applicationID),
	fmt.Sprintf("PRAGMA user_version = %d", schemaVersion),
}

func createStatement() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE WorkerLeases (")
	for _, c := range columns {
		fmt.Fprintf(&b, "%q %s, ", c.name, c.kind)
	}
	b.WriteString("PRIMARY KEY (" + primaryKey + ")) STRICT, WITHOUT ROWID")
	return b.String()
}

// guards are true while the tables are as they were when intruder looked at them, and store time is
// that by which the records were made.
const guards = "(SELECT schema_version FROM pragma_schema_version()) = ? AND (? IS NULL OR ? IN (SELECT wallOffset FROM Boot))"

// The statements of a group of appends, with insertGuarded. Once the transaction has begun, nobody else
// changes the tables or store time, so a group looks at the guards once.
const (
	beginGroup    = "BEGIN IMMEDIATE"
	selectGuards  = "SELECT " + guards
	commitGroup   = "COMMIT"
	rollbackGroup = "ROLLBACK"
)

// insertStatement inserts a record, whose values stand between two texts. The parameters after those of its columns are those of
// below. Without the record that is to be below, and if the key is free, the key is NULL, which it can't be.
func insertStatement(before, after string) string {
	names, values := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], values[i] = fmt.Sprintf("%q", c.name), fmt.Sprintf("?%d", i+1)
	}
	n := len(columns)
	values[1] = fmt.Sprintf(`CASE WHEN ?%d OR EXISTS (SELECT 1 FROM WorkerLeases WHERE workerType = ?1 AND seq = ?2
		OR workerType = ?1 AND seq = ?2 - 1 AND kind = ?%d AND claim = ?%d AND instanceId = ?%d) THEN ?2 END`, n+1, n+2, n+3, n+4)
	return "INSERT INTO WorkerLeases (" + strings.Join(names, ", ") + ")" + before + strings.Join(values, ", ") + after
}

// below are the last values of an insert: the record that must be below, unless it is nil.
func below(prev *store.Record) []any {
	if prev == nil {
		return []any{true, nil, nil, nil}
	}
	return []any{false, string(prev.Kind), prev.Claim, prev.InstanceID}
}

// queryFor reads all columns.
func queryFor(where string) string {
	return "SELECT " + readColumns() + " FROM WorkerLeases WHERE " + where
}

// readColumns selects all columns. A text that is too long for a record, such as 16 MB of metadata, is not loaded but
// replaced by its negated size.
func readColumns() string {
	names := make([]string, len(columns))
	for i, c := range columns {
		switch {
		case c.kind != "TEXT":
			names[i] = fmt.Sprintf("%q", c.name)
		default:
			names[i] = fmt.Sprintf("iif(octet_length(%[1]q) > %[2]d, -octet_length(%[1]q), %[1]q)", c.name, store.MaxMetadata)
		}
	}
	return strings.Join(names, ", ")
}

// Init creates the file and its tables. It changes no record that is there.
func (l *Ledger) Init(ctx context.Context) error {
	_, err := writes(ctx, l, "init", l.o.Path, func(context.Context, *file) (struct{}, error) { return struct{}{}, nil })
	return err
}

// establish creates a ledger in a file that is missing or empty. It uses one transaction, so that of two processes one waits
// for the other, and no process sees half a ledger. A new file gets WAL mode later, so
// that the file itself, not only its log, has the marks of a ledger.
func establish(ctx context.Context, path string) (err error) {
	create(path)
	db, err := connect(path, "mode=rwc")
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	// An unfinished transaction is rolled back by closing its connection.
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if found, err := identify(ctx, conn, false); err != nil || found == isLedger { // created by another process meanwhile
		return err
	}
	for _, statement := range append(slices.Clip(creation), "COMMIT") {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
