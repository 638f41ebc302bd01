//go:build sqlserver

package sqlserver

import (
	"context"
	"errors"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
)

// askHosts asks each host. What takes no writes says no more.
func (l *Ledger) askHosts(ctx context.Context, limit time.Duration) []storekit.Host {
	return storekit.AskHosts(ctx, l.clock, limit, l.address.Addresses(), func(ctx context.Context, i int) (storekit.Host, error) {
		opened, err := l.open(ctx, i)
		if err != nil {
			return storekit.Host{}, err
		}
		c := opened.(*conn)
		found, err := c.all(ctx, `SELECT CONVERT(nvarchar(300), SESSION_CONTEXT(N'`+sessionServer+`'));`)
		err = errors.Join(err, c.Close())
		if err != nil || len(found) != 1 {
			return storekit.Host{}, errors.Join(err, errors.New("the server doesn't say who it is"))
		}
		return storekit.Host{Process: found[0][0], Writes: true}, nil
	})
}
