package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.RightsChecker = (*Ledger)(nil)

// CheckRights returns store.ErrDenied if the user may not insert, and nil if it may. Any other error leaves it open.
// It asks the catalog, in three round trips, and stores nothing.
func (l *Ledger) CheckRights(ctx context.Context) error {
	if err := l.MayWrite("check rights"); err != nil {
		return err
	}
	_, err := storekit.RunUnchecked(ctx, l.runner, "check rights", "", func(ctx context.Context) (none struct{}, err error) {
		f, err := l.look(ctx)
		switch {
		case err != nil:
			return none, err
		case f.Ledger == nil:
			return none, l.missing()
		}
		if lacks := l.lacks(f, f.Ledger, l.address.table, "SELECT", "INSERT"); lacks != "" {
			return none, fmt.Errorf("%w: the user %s lacks %s", store.ErrDenied, f.User, lacks)
		}
		return none, nil
	})
	return err
}

// missing is the error of a table that isn't there.
func (l *Ledger) missing() error {
	return fmt.Errorf("there is no table %s.%s: %w", l.address.schema, l.address.table, store.ErrMissing)
}

// lacks names the rights on a table that the user lacks; empty if it has all.
func (l *Ledger) lacks(f *facts, r *relation, table string, rights ...string) string {
	if !f.Usage {
		return "USAGE ON SCHEMA " + l.address.schema
	}
	var none []string
	for _, right := range rights {
		if has := map[string]bool{"SELECT": r.Select, "INSERT": r.Insert, "UPDATE": r.Update, "DELETE": r.Delete}[right]; !has {
			none = append(none, right)
		}
	}
	if len(none) == 0 {
		return ""
	}
	return fmt.Sprintf("%s ON %s.%s", strings.Join(none, ", "), l.address.schema, table)
}
