package mysql

import (
	"context"
	"errors"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The tables. Names are bytes, so that no two are taken for one, and documents are kept as they are: the type JSON
// would rewrite them.
const (
	createLedger = `CREATE TABLE IF NOT EXISTS LEDGER (worker_type VARBINARY(255) NOT NULL, seq BIGINT NOT NULL,
		document LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, PRIMARY KEY (worker_type, seq)) ENGINE = InnoDB`
	createRoster = `CREATE TABLE IF NOT EXISTS ROSTER (worker_type VARBINARY(255) NOT NULL, id VARBINARY(255) NOT NULL,
		document LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, PRIMARY KEY (worker_type, id)) ENGINE = InnoDB`
)

// Init creates the tables unless they exist, and checks that they are fit for a ledger. It changes nothing that
// exists. It needs the right to create for what is missing alone. The roster is created unless that is denied:
// nothing else depends on it.
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
			_, err = l.db.ExecContext(ctx, l.filled(createLedger))
		}
		if err == nil && f.roster == nil {
			if _, err = l.db.ExecContext(ctx, l.filled(createRoster)); errors.Is(l.meaning(err).Is, store.ErrDenied) {
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
