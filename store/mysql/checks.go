package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone.
const (
	// CheckServer: the server is MySQL or MariaDB, takes writes, and keeps what it is given.
	CheckServer = sqldb.CheckServer
	// CheckProxy: nothing between here and the server sends statements elsewhere.
	CheckProxy = "proxy"
	// CheckPool: what the application's pool lends leads to servers that are known, and means what statements say.
	CheckPool = "pool"
	// CheckTable: the tables are InnoDB's, with the columns and the key of a ledger.
	CheckTable = sqldb.CheckTable
	// CheckDurability: a crash, a loss of power and a failover lose nothing that was acknowledged.
	CheckDurability = sqldb.CheckDurability
)

// checks are those of the server, and of the way to it.
func (l *Ledger) checks() []sqldb.Check[*facts] {
	return append([]sqldb.Check[*facts]{
		{Name: CheckServer, Refuses: true, Flaws: (*facts).serverFlaws, Sound: func(f *facts) (string, error) {
			product := map[bool]string{true: "MariaDB", false: "MySQL"}[f.mariadb]
			return fmt.Sprintf("%s %s takes writes, %s", product, f.variables["version"], f.Server), nil
		}},
		l.core.CheckTLS(l.secured),
		{Name: CheckProxy, Sound: l.soundProxy},
		l.core.CheckDurability((*facts).durabilityFlaws, (*facts).clusterLoses),
	}, l.core.CheckPool(CheckPool, "the servers that DB may lead to aren't known, so they weren't asked whether two of them take writes, nor for their clocks: give URI for that")...)
}

// soundProxy says whether there is one.
func (l *Ledger) soundProxy(f *facts) (string, error) {
	switch {
	case l.core.Lender != nil:
		return "", storekit.Skip("whether there is one behind the application's pool isn't known: each statement makes sure where it runs")
	case f.proxied:
		return "there is one, which sends all statements to the server that takes writes", nil
	}
	return "there is none", nil
}

// secured says how the connection is, and what to do about it.
func (l *Ledger) secured() (text, remedy string) {
	const verify = "use tls=true, with tlsCA if the server's authority isn't one of the system's"
	switch mode := l.address.tls; {
	case mode == tlsOff && l.address.Loopback():
		return "not encrypted, to this machine alone", ""
	case mode == tlsOff:
		return "not encrypted (tls=false): who sees or changes the traffic sees and changes leases", verify
	case mode == tlsSkip:
		return "encrypted, but the server's certificate isn't verified (tls=skip-verify)", verify
	}
	return "encrypted, and the server's certificate is verified", ""
}

// proxyRemedy is what to do about a proxy that splits reads from writes.
const proxyRemedy = "let it send all statements of this user to the server that takes writes"

// unusable is what is wrong with a server that takes no writes, or a proxy that sends statements elsewhere, by their answer.
func unusable(err error) (storekit.Flaw, bool) {
	if why, all := storekit.AllUnfit(err); all {
		return storekit.Flaw{Check: CheckServer, What: why.Why, Remedy: nameTheRightOne}, true
	}
	why, is := ofServer(err)
	return storekit.Flaw{Check: CheckProxy, What: why.Why, Remedy: proxyRemedy}, is
}

// leastType is the least size of the column of worker types, in bytes.
const leastType = 63

// ledgerColumns are the columns of the records' table.
var ledgerColumns = []sqldb.Column{
	{Name: "worker_type", Type: fmt.Sprintf("varbinary(%d) or longer", leastType), Why: ": others may take two names for one", Fits: func(c sqldb.Column) bool {
		return strings.HasPrefix(c.Type, "varbinary(") && c.Length >= leastType
	}},
	{Name: "seq", Type: "bigint", Fits: func(c sqldb.Column) bool { return c.Type == "bigint" }},
	{Name: "document", Type: "longtext in utf8mb4", Why: ": others don't keep each byte of a record", Fits: func(c sqldb.Column) bool {
		return c.Type == `longtext in "utf8mb4"` || c.Type == `mediumtext in "utf8mb4"`
	}},
}

// tableFlaws are the reasons why the table of the records is unfit that only MySQL's have.
func tableFlaws(f *facts, flaws *sqldb.Flaws) {
	if !strings.EqualFold(f.engine, "InnoDB") {
		flaws.Add("ALTER TABLE … ENGINE = InnoDB, while no worker works", "has the engine %.30s, which isn't transactional, or isn't known", f.engine)
	}
	if strings.Contains(strings.ToLower(f.options), "partitioned") {
		flaws.Add("ALTER TABLE … REMOVE PARTITIONING", "is partitioned: a partition can be dropped, and the newest record with it")
	}
}

// explained are statements that take one right each, besides SELECT.
var explained = map[string]string{
	"SELECT": `SELECT document FROM TABLE LIMIT 0`,
	"INSERT": `EXPLAIN INSERT INTO TABLE (worker_type, KEY, document) VALUES ('.', 1, '')`,
	"UPDATE": `EXPLAIN UPDATE TABLE SET document = '' WHERE worker_type = '.' AND KEY = 1`,
	"DELETE": `EXPLAIN DELETE FROM TABLE WHERE worker_type = '.' AND KEY = 1`,
}

// lacks names the rights on a table that the user lacks; empty if it has all. It lets the server explain statements, which takes the
// same rights, and stores nothing.
func (l *Ledger) lacks(ctx context.Context, _ *facts, table string, rights ...string) (string, error) {
	key := "seq"
	if table != l.address.Table {
		key = "id"
	}
	return sqldb.Lacking(l.address.Name(table), rights, func(right string) (bool, error) {
		rows, err := l.db.QueryContext(ctx, strings.NewReplacer("TABLE", quoted(l.address.Database, table), "KEY", key).Replace(explained[right]))
		if err == nil {
			err = errors.Join(rows.Err(), rows.Close())
		}
		if _, connects := errors.AsType[storekit.ConnectError](err); err != nil && !connects && errors.Is(l.meaning(err).Is, store.ErrDenied) {
			return false, nil // A login that is denied says nothing of rights.
		}
		return err == nil, err
	})
}
