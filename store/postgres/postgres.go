package postgres

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/jackc/pgx/v5"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// Ledger is a store.Ledger in a table of PostgreSQL.
type Ledger struct {
	*sqldb.Ledger[*facts]

	core    *sqldb.Core[*facts]
	address address
	clock   clock.Clock
	config  *pgx.ConnConfig
	// files are what the driver makes of the files that the URI and the environment name; nil with an application's pool.
	files *storekit.Renewed[*pgx.ConnConfig]
	// before completes the settings of a connection; nil if there is nothing to do.
	before func(ctx context.Context, c *pgx.ConnConfig) error
	// direct says that a connection led to a server, and pooled that one led to a pooler.
	direct, pooled atomic.Bool
	// last is the number of the host that the newest connection leads to.
	last atomic.Int64
	// lentDB hands out the connections of a pgxpool of the application's; nil without.
	lentDB *sql.DB
	db     *sql.DB
	// aside is for what mustn't wait for a connection of db.
	aside *sql.DB
	// name is that of the handle in its statements, which statements counts.
	name       string
	statements atomic.Int64
	// inserts are the statements of insertion, by whether they are above a record and whether they notify, and often those
	// that a server prepares.
	inserts map[[2]bool]string
	often   map[string]bool
	width   sync.Mutex // for narrowing, which narrows the pool, and priming: a connection is made for those who wait
	priming bool
	// lasting is how many statements take long; width guards it.
	lasting int
	// waitTime is how long all together have waited for a connection; width guards it.
	waitTime  time.Duration
	narrowing *clock.Timer
	watches   watches
	askAfter  time.Duration // the constant, but in tests
}

var (
	_ store.Ledger    = (*Ledger)(nil)
	_ store.Pager     = (*Ledger)(nil)
	_ store.Roster    = (*Ledger)(nil)
	_ store.Described = (*Ledger)(nil)
)

// history is the timeline of a server, unless what it has acknowledged survives each failover.
func (l *Ledger) history(server string) string {
	if f := l.core.Known(); f != nil && f.surviving() {
		return ""
	}
	_, timeline, _ := strings.Cut(server, onTimeline)
	return timeline
}

// process is the part of a server's name that is the same by whatever address it was reached.
func process(server string) string {
	_, process, _ := strings.Cut(server, sqldb.Since)
	process, _, _ = strings.Cut(process, onTimeline)
	return process
}

// closeRest closes what a ledger has beside its pool.
func (l *Ledger) closeRest() error {
	err := l.aside.Close()
	if l.lentDB != nil {
		err = errors.Join(err, l.lentDB.Close())
	}
	return err
}
