package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/jackc/pgx/v5"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Ledger is a store.Ledger in a table of PostgreSQL.
type Ledger struct {
	*storekit.SQL

	address address
	clock   clock.Clock
	secrets storekit.Secrets
	config  *pgx.ConnConfig
	lines   lines
	db      *sql.DB
	fitness *storekit.Fitness
	runner  *storekit.Runner
	// known is what the newest check found; nil before the first.
	known atomic.Pointer[facts]
	// copied: standbys were seen, one of which may be the primary one day, connected at the moment or not.
	copied atomic.Bool
	// quiet is up to when appends notify nobody, because that failed, in Unix ns by the clock.
	quiet atomic.Int64

	// life ends with Close, and with it all watches.
	life context.Context
	end  context.CancelFunc
}

var (
	_ store.Ledger = (*Ledger)(nil)
	_ store.Pager  = (*Ledger)(nil)
	_ store.Roster = (*Ledger)(nil)
)

// String names the table and the hosts, never a password.
func (l *Ledger) String() string {
	return fmt.Sprintf("postgres %s.%s in %s at %s", l.address.schema, l.address.table, l.address.Database, l.address.place())
}

// Tail returns the newest records, newest first, and the primary's time, which is selected along with them.
func (l *Ledger) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := l.SQL.Tail(ctx, workerType, limit)
	return records, l.skewed(stamp), err
}

// Now reads the primary's clock.
func (l *Ledger) Now(ctx context.Context) (store.Stamp, error) {
	stamp, err := l.SQL.Now(ctx)
	return l.skewed(stamp), err
}

// skewed is a stamp with its skew.
func (l *Ledger) skewed(s store.Stamp) store.Stamp {
	if !s.IsZero() {
		s.Skew = l.skew()
	}
	return s
}

// skew is how far the clock of a server that may become the primary, or was it, may be from the primary's.
func (l *Ledger) skew() time.Duration {
	switch {
	case l.address.skew > 0:
		return l.address.skew
	case len(l.address.Hosts) > 1, l.copied.Load():
		return defaultSkew
	}
	return 0
}

// Close ends the operations and watches in progress, and closes the connections.
func (l *Ledger) Close(ctx context.Context) error {
	l.end()
	return l.runner.Close(ctx, func() error {
		err := l.db.Close()
		l.lines.close()
		return err
	})
}
