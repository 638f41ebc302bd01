package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/store/internal/sqldb"
)

// The tables. Names are compared byte by byte, whatever the database's collation is: it may take two for one, and a
// new version of the operating system may bring another order, in which an index no longer finds its rows.
const (
	createSchema = `CREATE SCHEMA IF NOT EXISTS SCHEMA_NAME`
	createLedger = `CREATE TABLE IF NOT EXISTS LEDGER (worker_type pg_catalog.text COLLATE pg_catalog."C" NOT NULL, seq bigint NOT NULL, document pg_catalog.json NOT NULL, PRIMARY KEY (worker_type, seq))`
	createRoster = `CREATE TABLE IF NOT EXISTS ROSTER (worker_type pg_catalog.text COLLATE pg_catalog."C" NOT NULL, id pg_catalog.text COLLATE pg_catalog."C" NOT NULL, document pg_catalog.json NOT NULL, PRIMARY KEY (worker_type, id))`
)

// rights are those of a worker. DELETE is for trimming. Without UPDATE on the ledger nobody can overwrite a lease.
const rights = `GRANT USAGE ON SCHEMA SCHEMA_NAME TO WORKER;
GRANT SELECT, INSERT, DELETE ON LEDGER TO WORKER;
GRANT SELECT, INSERT, UPDATE, DELETE ON ROSTER TO WORKER;
`

// script has the statements of Init for psql, and the rights of a worker.
func (l *Ledger) script() string {
	statements := []string{createSchema, createLedger, createRoster, "-- A worker needs these rights and no others. Put its user here, unless this is it.\n" + rights}
	database := strings.Join(strings.Fields(l.address.Database), " ") // A comment ends with its line.
	return "-- for psql, in the database " + database + "\n" + l.filled(strings.Join(statements, ";\n"))
}

// filled is a statement of this file with its names.
func (l *Ledger) filled(text string) string {
	worker := `"` + strings.ReplaceAll(l.core.Worker(), `"`, `""`) + `"`
	return strings.NewReplacer("WORKER", worker, "SCHEMA_NAME", `"`+l.address.Schema+`"`, "LEDGER", quoted(l.address.Schema, l.address.Table),
		"ROSTER", quoted(l.address.Schema, l.address.Table+sqldb.RosterSuffix)).Replace(text)
}

// create creates a table, and its schema if that is missing.
func (l *Ledger) create(ctx context.Context, f *facts, table string) error {
	if table != l.address.Table {
		return l.createUnless(ctx, createRoster)
	}
	if !f.HasSchema {
		if err := l.createUnless(ctx, createSchema); err != nil {
			return err
		}
	}
	return l.createUnless(ctx, createLedger)
}

// createUnless executes a statement that creates something unless it exists. Another process may be doing the same: then
// one of them finds entries in the catalog that weren't there before.
func (l *Ledger) createUnless(ctx context.Context, text string) error {
	text = l.filled(text)
	_, err := l.db.ExecContext(ctx, text)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code == codeUnique || e.Code == "42P07" || e.Code == "42710" || e.Code == "42P06") {
		_, err = l.db.ExecContext(ctx, text)
	}
	return err
}
