package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	code "modernc.org/sqlite/lib"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// ours are the tables of a ledger, as SQL's list.
const ours = `('workerleases', 'boot')`

// selectIntruder finds a trigger, an index or a column that isn't a ledger's and can keep
// records out, change them or delete them; even an index that isn't unique does, if its
// expression fails or its collation is unknown here. Besides, it finds the primary key, a column of a
// ledger's that another program made otherwise, the text of the tables, and the version of the schema
// that all this is of.
var selectIntruder = `SELECT
	(SELECT what || ' ' || quote(name) FROM (
		SELECT 'the trigger' AS what, name FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) IN ` + ours + `
		UNION ALL
		SELECT iif(i."unique", 'the unique index', 'the index'), i.name FROM sqlite_schema AS t, pragma_index_list(t.name) AS i
			WHERE t.type = 'table' AND lower(t.name) IN ` + ours + ` AND i.origin <> 'pk'
		UNION ALL
		SELECT 'the column', c.name FROM (SELECT 'WorkerLeases' AS place UNION ALL SELECT 'Boot') AS t, pragma_table_xinfo(t.place) AS c
			WHERE (t.place, c.name) NOT IN (SELECT place, name FROM (` + selectOwn() + `)) AND (c."notnull" AND c.dflt_value IS NULL OR c.hidden))
		LIMIT 1),
	` + selectKey("WorkerLeases") + `,
	` + selectKey("Boot") + `,
	` + selectRebuilt + `,
	(SELECT group_concat(sql, char(10)) FROM sqlite_schema WHERE type = 'table' AND lower(name) IN ` + ours + `),
	(SELECT schema_version FROM pragma_schema_version())`

// selectRebuilt selects what another program made otherwise of a table or a column of a ledger's, or NULL.
// Only a STRICT table keeps keys out that are no integers.
var selectRebuilt = `(SELECT 'table WorkerLeases isn''t STRICT' FROM pragma_table_list('WorkerLeases') WHERE schema = 'main' AND NOT strict
	UNION ALL SELECT 'column ' || own.name || ' of ' || own.place || ' is ' || iif(c.name IS NULL, 'missing', coalesce(nullif(c.type, ''), 'untyped') || iif(c."notnull", ' NOT NULL', '') || iif(c.hidden, ' GENERATED', '')) || ', want ' || own.kind
	FROM (` + selectOwn() + `) AS own LEFT JOIN pragma_table_xinfo(own.place) AS c ON c.name = own.name
	WHERE iif(c.name IS NULL, own.demanded, c.hidden OR upper(c.type) || iif(c."notnull", ' NOT NULL', '') <> own.kind)
	LIMIT 1)`

// selectKey selects the columns of the primary key of a table, as primaryKey has them.
func selectKey(table string) string {
	return `(SELECT group_concat(name, ',') FROM (SELECT name FROM pragma_table_info('` + table + `') WHERE pk > 0 ORDER BY pk))`
}

// selectOwn selects the columns of a ledger: the table, the name and the kind of each, and whether it must be there.
func selectOwn() string {
	var rows []string
	row := func(place, name, kind string, demanded bool) {
		rows = append(rows, fmt.Sprintf("SELECT '%s' AS place, '%s' AS name, '%s' AS kind, %v AS demanded", place, name, kind, demanded))
	}
	for _, c := range columns {
		row("WorkerLeases", c.name, c.kind, true)
	}
	row("Boot", "id", "TEXT NOT NULL", true)
	row("Boot", "wallOffset", "INTEGER NOT NULL", true)
	row("Boot", "madeAt", "INTEGER", false) // It is added when a row is first written.
	return strings.Join(rows, " UNION ALL ")
}

// querier is a database, or one connection to it.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// intruder refuses tables with a constraint or a trigger that isn't a ledger's. A record that
// such a constraint keeps out would be taken for one whose key is taken, and a trigger can
// drop one that was acknowledged. It refuses tables without the key or the types of a ledger, too:
// two workers would store one key, or read another head than the newest. It returns the version of the schema that it has looked at.
func intruder(ctx context.Context, db querier) (schema int64, err error) {
	var found, key, bootKey, column, text sql.NullString
	if err := db.QueryRowContext(ctx, selectIntruder).Scan(&found, &key, &bootKey, &column, &text, &schema); err != nil {
		return 0, hidden(ctx, db, err)
	}
	switch {
	case key.String != primaryKey:
		return 0, rebuilt(fmt.Sprintf("primary key of WorkerLeases %q, want %q", key.String, primaryKey))
	case column.Valid:
		return 0, rebuilt(column.String)
	case bootKey.String != "id":
		return 0, rebuilt(fmt.Sprintf("primary key of Boot %q, want %q", bootKey.String, "id"))
	}
	if !found.Valid {
		constraint := constraining.FindStringSubmatch(quoted.ReplaceAllString(text.String, " "))
		if constraint == nil {
			return schema, nil
		}
		found.String = "the constraint " + strings.ToUpper(constraint[1])
	}
	return 0, fault.Flaw{
		Check: store.CheckConstraints, What: found.String + " isn't a ledger's, and may keep records out or change them",
		Remedy: "stop all workers, remove it, and start them again",
	}.Refuse()
}

// hidden is the error of a query about the file. SQLite refuses to answer it if a table has the name of
// what it asks.
func hidden(ctx context.Context, db querier, err error) error {
	if resultCode(err)&0xff != code.SQLITE_ERROR {
		return err
	}
	var name string
	if failed := db.QueryRowContext(ctx, `SELECT quote(name) FROM sqlite_schema WHERE lower(name) GLOB 'pragma_*' LIMIT 1`).Scan(&name); failed != nil {
		return err
	}
	return fault.Flaw{
		Check: store.CheckConstraints, What: "the table " + name + " hides what SQLite says about the file",
		Remedy: "stop all workers, rename it, and start them again",
	}.Refuse()
}

// rebuilt is the error for a table that differs from a ledger's, with the reason.
func rebuilt(why string) error {
	return fault.Flaw{
		Check: store.CheckConstraints, What: "damaged: " + why,
		Remedy: "stop all workers, restore a backup or make the table as it was, and start them again",
	}.Refuse()
}

// quoted is what has no words in an SQL text: texts, names in quotes, and comments. constraining finds a word by which a table
// constrains records in a way that no index or column shows.
var (
	quoted       = regexp.MustCompile("(?s)--[^\\n]*|/\\*.*?(?:\\*/|$)|'[^']*(?:'|$)|\"[^\"]*(?:\"|$)|`[^`]*(?:`|$)|\\[[^\\]]*(?:\\]|$)")
	constraining = regexp.MustCompile(`(?:^|[^\w\x{80}-\x{10FFFF}])((?i:CHECK|REFERENCES|CONFLICT|COLLATE))(?:[^\w\x{80}-\x{10FFFF}]|$)`)
)
