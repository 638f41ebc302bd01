//go:build sqlserver

package sqlserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.RightsChecker = (*Ledger)(nil)

// CheckRights returns store.ErrDenied if the user may not insert, and nil if it may. Any other error leaves it open. It
// stores nothing.
func (l *Ledger) CheckRights(ctx context.Context) error {
	if err := l.MayWrite("check rights"); err != nil {
		return err
	}
	_, err := storekit.RunUnchecked(ctx, l.runner, "check rights", "", func(ctx context.Context) (none struct{}, err error) {
		lacks, err := l.lacks(ctx, l.address.table, "SELECT", "INSERT")
		if err == nil && lacks != "" {
			err = fmt.Errorf("%w: the user %s lacks %s", store.ErrDenied, l.address.User, lacks)
		}
		return none, err
	})
	return err
}

// askRight is 1 if the user has a right on a table, 0 if not, and NULL if it knows of no such table.
const askRight = `SELECT CONVERT(nvarchar(1), HAS_PERMS_BY_NAME(N'TABLE', N'OBJECT', N'RIGHT'));`

// askRight asks whether the user has a right on a table.
func (l *Ledger) askRight(table, right string) string {
	return strings.NewReplacer("TABLE", quoted(l.address.schema, table), "RIGHT", right).Replace(askRight)
}

// lacks names the rights on a table that the user lacks; empty if it has all.
func (l *Ledger) lacks(ctx context.Context, table string, rights ...string) (string, error) {
	var none []string
	for _, right := range rights {
		found, err := l.ask(ctx, l.askRight(table, right))
		if err != nil {
			return "", err
		}
		if len(found) != 1 || found[0][0] != "1" {
			none = append(none, right)
		}
	}
	if len(none) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s ON OBJECT::%s.%s", strings.Join(none, ", "), l.address.schema, table), nil
}
