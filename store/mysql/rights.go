package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.RightsChecker = (*Ledger)(nil)

// CheckRights returns store.ErrDenied if the user may not insert, and nil if it may. Any other error leaves it open.
// It lets the server explain an insert, which takes the same rights, and stores nothing.
func (l *Ledger) CheckRights(ctx context.Context) error {
	if err := l.MayWrite("check rights"); err != nil {
		return err
	}
	_, err := storekit.RunUnchecked(ctx, l.runner, "check rights", "", func(ctx context.Context) (none struct{}, err error) {
		lacks, err := l.lacks(ctx, "LEDGER", "SELECT", "INSERT")
		if err == nil && lacks != "" {
			err = fmt.Errorf("%w: the user %s lacks %s", store.ErrDenied, l.address.User, lacks)
		}
		return none, err
	})
	return err
}

// explained are statements that take one right each, besides SELECT.
var explained = map[string]string{
	"SELECT": `SELECT document FROM TABLE LIMIT 0`,
	"INSERT": `EXPLAIN INSERT INTO TABLE (worker_type, KEY, document) VALUES ('.', 1, '')`,
	"UPDATE": `EXPLAIN UPDATE TABLE SET document = '' WHERE worker_type = '.' AND KEY = 1`,
	"DELETE": `EXPLAIN DELETE FROM TABLE WHERE worker_type = '.' AND KEY = 1`,
}

// lacks names the rights on a table, LEDGER or ROSTER, that the user lacks; empty if it has all.
func (l *Ledger) lacks(ctx context.Context, table string, rights ...string) (string, error) {
	key, name := "seq", l.address.table
	if table == "ROSTER" {
		key, name = "id", l.address.table+rosterSuffix
	}
	var none []string
	for _, right := range rights {
		rows, err := l.db.QueryContext(ctx, l.filled(strings.NewReplacer("TABLE", table, "KEY", key).Replace(explained[right])))
		if err == nil {
			err = errors.Join(rows.Err(), rows.Close())
		}
		switch {
		case err == nil:
		case errors.Is(l.meaning(err).Is, store.ErrDenied):
			none = append(none, right)
		default:
			return "", err
		}
	}
	if len(none) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s ON %s.%s", strings.Join(none, ", "), l.address.Database, name), nil
}
