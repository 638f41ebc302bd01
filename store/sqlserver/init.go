//go:build sqlserver

package sqlserver

import (
	"context"
	"strings"
)

// The tables. Names are bytes, since texts are compared without their trailing spaces whatever the collation is. Documents
// are kept as they are.
const (
	createLedger = `CREATE TABLE LEDGER (worker_type varbinary(255) NOT NULL, seq bigint NOT NULL, document nvarchar(max) NOT NULL,
	CONSTRAINT LEDGERKEY PRIMARY KEY CLUSTERED (worker_type, seq));`
	createRoster = `CREATE TABLE ROSTER (worker_type varbinary(255) NOT NULL, id varbinary(255) NOT NULL, document nvarchar(max) NOT NULL,
	CONSTRAINT ROSTERKEY PRIMARY KEY CLUSTERED (worker_type, id));`
)

// rights are those of a worker. DELETE is for trimming. Without UPDATE on the ledger nobody can overwrite a lease.
const rights = `-- A worker needs these rights and no others. Put its user here, unless this is it.
GRANT SELECT, INSERT, DELETE ON OBJECT::LEDGER TO WORKER;
GRANT SELECT, INSERT, UPDATE, DELETE ON OBJECT::ROSTER TO WORKER;
`

// script has the statements of Init for sqlcmd, and the rights of a worker.
func (l *Ledger) script() string {
	user := "[" + strings.ReplaceAll(l.core.Worker(), "]", "]]") + "]"
	lines := "-- for sqlcmd, in the database " + strings.Join(strings.Fields(l.address.Database), " ") + "\n" // A comment ends with its line.
	for _, t := range []struct{ table, create string }{{"LEDGER", createLedger}, {"ROSTER", createRoster}} {
		lines += l.filled("IF OBJECT_ID(N'" + t.table + "') IS NULL\n" + t.create + "\n")
	}
	parts := strings.Split(rights, "WORKER")
	for i, part := range parts {
		parts[i] = l.filled(part) // A table may be named so, too.
	}
	return lines + strings.Join(parts, user)
}

// create creates a table, unless another process has done so meanwhile.
func (l *Ledger) create(ctx context.Context, _ *facts, table string) error {
	text := createLedger
	if table != l.address.Table {
		text = createRoster
	}
	_, err := l.db.ExecContext(ctx, guard+l.filled(text))
	if e, ok := ofStatement(err); ok && e.Number == codeExists {
		return nil
	}
	return err
}
