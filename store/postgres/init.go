package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Init creates the tables, and their schema, unless they exist, and checks that they are fit for a ledger. It
// changes nothing that exists. It needs the right to create for what is missing alone. The roster is created unless
// that is denied: nothing else depends on it.
func (l *Ledger) Init(ctx context.Context) error {
	if err := l.MayWrite("init"); err != nil {
		return err
	}
	_, err := storekit.RunUnchecked(ctx, l.runner, "init", "", func(ctx context.Context) (none struct{}, err error) {
		f, err := l.look(ctx)
		if err != nil {
			return none, err
		}
		if !f.Schema {
			err = l.create(ctx, fmt.Sprintf(`CREATE SCHEMA IF NOT EXISTS "%s"`, l.address.schema))
		}
		if err == nil && f.Ledger == nil {
			err = l.create(ctx, createLedger)
		}
		if err == nil && f.Roster == nil {
			if err = l.create(ctx, createRoster); err != nil && errors.Is(l.meaning(err).Is, store.ErrDenied) {
				err = nil
			}
		}
		if err == nil {
			err = l.fitness.Check(ctx)
		}
		return none, err
	})
	return err
}

// The tables. Names are compared byte by byte, whatever the database's collation is: it may take two for one, and a
// new version of the operating system may bring another order, in which an index no longer finds its rows.
const (
	createLedger = `CREATE TABLE IF NOT EXISTS LEDGER (worker_type text COLLATE "C" NOT NULL, seq bigint NOT NULL, document json NOT NULL, PRIMARY KEY (worker_type, seq))`
	createRoster = `CREATE TABLE IF NOT EXISTS ROSTER (worker_type text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, document json NOT NULL, PRIMARY KEY (worker_type, id))`
)

// create executes a statement that creates something unless it exists. Another process may be doing the same: then
// one of them finds entries in the catalog that weren't there before.
func (l *Ledger) create(ctx context.Context, text string) error {
	text = strings.NewReplacer("LEDGER", quoted(l.address.schema, l.address.table), "ROSTER", quoted(l.address.schema, l.address.table+rosterSuffix)).Replace(text)
	_, err := l.db.ExecContext(ctx, text)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code == codeUnique || e.Code == "42P07" || e.Code == "42710" || e.Code == "42P06") {
		_, err = l.db.ExecContext(ctx, text)
	}
	return err
}
