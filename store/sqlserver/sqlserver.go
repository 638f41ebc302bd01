//go:build sqlserver

package sqlserver

import (
	"crypto/tls"
	"database/sql"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// Ledger is a store.Ledger in a table of SQL Server or Azure SQL Database.
type Ledger struct {
	*sqldb.Ledger[*facts]

	core    *sqldb.Core[*facts]
	address address
	clock   clock.Clock
	tls     *storekit.Renewed[*tls.Config]
	db      *sql.DB
}

var (
	_ store.Ledger    = (*Ledger)(nil)
	_ store.Pager     = (*Ledger)(nil)
	_ store.Roster    = (*Ledger)(nil)
	_ store.Described = (*Ledger)(nil)
)
