//go:build sqlserver

package sqlserver

import (
	"context"
	"errors"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The tables. Names are bytes, since texts are compared without their trailing spaces whatever the collation is. Documents
// are kept as they are.
const (
	createLedger = `CREATE TABLE LEDGER (worker_type varbinary(255) NOT NULL, seq bigint NOT NULL, document nvarchar(max) NOT NULL,
	CONSTRAINT LEDGERKEY PRIMARY KEY CLUSTERED (worker_type, seq));`
	createRoster = `CREATE TABLE ROSTER (worker_type varbinary(255) NOT NULL, id varbinary(255) NOT NULL, document nvarchar(max) NOT NULL,
	CONSTRAINT ROSTERKEY PRIMARY KEY CLUSTERED (worker_type, id));`
)

// Init creates the tables unless they exist, and checks that they are fit for a ledger. It changes nothing that exists. It
// needs the right to create for what is missing alone: CREATE TABLE in the database, and ALTER on the schema. The roster is
// created unless that is denied: nothing else depends on it.
func (l *Ledger) Init(ctx context.Context) error {
	if err := l.MayWrite("init"); err != nil {
		return err
	}
	_, err := storekit.RunUnchecked(ctx, l.runner, "init", "", func(ctx context.Context) (none struct{}, err error) {
		f, err := l.look(ctx)
		if err != nil {
			return none, err
		}
		if f.ledger == nil {
			err = l.create(ctx, createLedger)
		}
		if err == nil && f.roster == nil {
			if err = l.create(ctx, createRoster); errors.Is(l.meaning(err).Is, store.ErrDenied) {
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

// create creates a table, unless another process has done so meanwhile.
func (l *Ledger) create(ctx context.Context, text string) error {
	_, err := l.db.ExecContext(ctx, guard+l.filled(text))
	if e, ok := ofStatement(err); ok && e.Number == codeExists {
		return nil
	}
	return err
}
