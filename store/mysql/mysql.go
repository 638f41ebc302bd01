package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Ledger is a store.Ledger in a table of MySQL or MariaDB.
type Ledger struct {
	*storekit.SQL

	address address
	clock   clock.Clock
	secrets storekit.Secrets
	dialer  dialer
	db      *sql.DB
	fitness *storekit.Fitness
	runner  *storekit.Runner
	// known is what the newest check found; nil before the first.
	known atomic.Pointer[facts]
	// shared: other servers were seen, one of which may take the writes one day, connected at the moment or not.
	shared atomic.Bool
	// plain says that inserts return nothing, whatever the server can do. For tests of what is done on MySQL.
	plain bool
}

var (
	_ store.Ledger = (*Ledger)(nil)
	_ store.Pager  = (*Ledger)(nil)
	_ store.Roster = (*Ledger)(nil)
)

// String names the table and the hosts, never a password.
func (l *Ledger) String() string {
	return fmt.Sprintf("mysql %s.%s at %s", l.address.Database, l.address.table, l.address.place())
}

// Tail returns the newest records, newest first, and the server's time, which is selected along with them.
func (l *Ledger) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := l.SQL.Tail(ctx, workerType, limit)
	return records, l.skewed(stamp), err
}

// Now reads the server's clock.
func (l *Ledger) Now(ctx context.Context) (store.Stamp, error) {
	stamp, err := l.SQL.Now(ctx)
	return l.skewed(stamp), err
}

// skewed is a stamp with its skew. Its clock has a name if the server's process is known.
func (l *Ledger) skewed(s store.Stamp) store.Stamp {
	if s.IsZero() {
		return s
	}
	s.Skew = l.skew()
	if s.Clock = ""; isProcess(s.Server) {
		s.Clock = s.Server
	}
	return s
}

// skew is how far the clock of a server that may take writes, now or later, may be from that of the one that
// answered.
func (l *Ledger) skew() time.Duration {
	switch {
	case l.address.skew > 0:
		return l.address.skew
	case len(l.address.Hosts) > 1, l.shared.Load():
		return defaultSkew
	}
	return 0
}

// Close ends the operations in progress, and closes the connections.
func (l *Ledger) Close(ctx context.Context) error {
	return l.runner.Close(ctx, func() error {
		err := l.db.Close()
		l.dialer.close()
		return err
	})
}
