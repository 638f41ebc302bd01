package mysql

import (
	"context"
	"strings"
)

// The tables. Names are bytes, so that no two are taken for one, and documents are kept as they are: the type JSON
// would rewrite them.
const (
	createLedger = `CREATE TABLE IF NOT EXISTS LEDGER (worker_type VARBINARY(255) NOT NULL, seq BIGINT NOT NULL,
		document LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, PRIMARY KEY (worker_type, seq)) ENGINE = InnoDB`
	createRoster = `CREATE TABLE IF NOT EXISTS ROSTER (worker_type VARBINARY(255) NOT NULL, id VARBINARY(255) NOT NULL,
		document LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, PRIMARY KEY (worker_type, id)) ENGINE = InnoDB`
)

// rights are those of a worker. DELETE is for trimming. Without UPDATE on the ledger nobody can overwrite a lease.
const rights = `-- A worker needs these rights and no others. Put its user here, unless this is it.
GRANT SELECT, INSERT, DELETE ON LEDGER TO WORKER;
GRANT SELECT, INSERT, UPDATE, DELETE ON ROSTER TO WORKER;
`

// script has the statements of Init for the mysql or mariadb client, and the rights of a worker, from any host.
func (l *Ledger) script() string {
	worker := "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(l.core.Worker()) + "'@'%'" // '' would be everybody.
	parts := strings.Split(strings.Join([]string{createLedger, createRoster, rights}, ";\n"), "WORKER")
	for i, part := range parts {
		parts[i] = l.filled(part) // A table may be named so, too.
	}
	return "-- for mysql or mariadb\n" + strings.Join(parts, worker)
}

// create creates a table.
func (l *Ledger) create(ctx context.Context, _ *facts, table string) error {
	text := createLedger
	if table != l.address.Table {
		text = createRoster
	}
	_, err := l.db.ExecContext(ctx, l.filled(text))
	return err
}
