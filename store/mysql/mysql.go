package mysql

import (
	"crypto/tls"
	"database/sql"
	"sync"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// Ledger is a store.Ledger in a table of MySQL or MariaDB.
type Ledger struct {
	*sqldb.Ledger[*facts]

	core    *sqldb.Core[*facts]
	address address
	clock   clock.Clock
	tls     *storekit.Renewed[*tls.Config] // nil without
	db      *sql.DB
	// lent are the connections that were lent before: what is known of one needn't be asked again. lending guards it.
	lending sync.Mutex
	lent    map[driverConn]*conn
	// clustered are the states of the Galera clusters that servers belong to, by the names of their processes.
	clustered sync.Map
	stuck     stuck
}

var (
	_ store.Ledger    = (*Ledger)(nil)
	_ store.Pager     = (*Ledger)(nil)
	_ store.Roster    = (*Ledger)(nil)
	_ store.Described = (*Ledger)(nil)
)
