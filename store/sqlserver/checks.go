//go:build sqlserver

package sqlserver

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone. Other stores have checks with the same names.
const (
	// CheckServer: the server is SQL Server or Azure SQL Database, and takes writes. It is never more than a warning, as
	// long as this store is untested.
	CheckServer = sqldb.CheckServer
	// CheckPool: what the application's pool lends leads to servers that are known.
	CheckPool = "pool"
	// CheckTable: the tables have the columns and the key of a ledger.
	CheckTable = sqldb.CheckTable
	// CheckDurability: a crash, a loss of power and a failover lose nothing that was acknowledged.
	CheckDurability = sqldb.CheckDurability
)

// checks are those of the server, and of the way to it.
func (l *Ledger) checks() []sqldb.Check[*facts] {
	return append([]sqldb.Check[*facts]{
		{Name: CheckServer, Refuses: true, Flaws: (*facts).serverFlaws, Sound: unproven},
		l.core.CheckTLS(l.secured),
		l.core.CheckDurability((*facts).durabilityFlaws, nil),
	}, l.core.CheckPool(CheckPool, "the servers that DB may lead to aren't known, so they weren't asked whether two of them take writes: give URI for that")...)
}

// unproven says that this store is untested, after what else is said of the server.
func unproven(f *facts) (string, error) {
	return storekit.Found("", storekit.Flaw{
		Check: CheckServer, Level: store.LevelWarn,
		What: fmt.Sprintf("SQL Server %s takes writes, %s; but this store is untested: it was never run on a real server, and promises what the server's documentation does",
			f.values[valueVersion], f.Server),
		Remedy: "run its suite on a server like yours: SLOTLEASE_SQLSERVER=sqlserver://… go test -tags sqlserver ./store/sqlserver",
	})
}

// unusable is what is wrong with a server that takes no writes, by its answer.
func unusable(err error) (storekit.Flaw, bool) {
	why, is := storekit.AllUnfit(err)
	if !is {
		why, is = ofServer(err)
	}
	return storekit.Flaw{Check: CheckServer, What: why.Why, Remedy: nameTheRightOne}, is
}

// secured says how the connection is, and what to do about it.
func (l *Ledger) secured() (text, remedy string) {
	const verify = "use encrypt=true or strict, with tlsCA if the server's authority isn't one of the system's"
	switch a := &l.address; {
	case a.encrypt == encryptNo && a.Loopback():
		return "not encrypted but for the login, to this machine alone", ""
	case a.encrypt == encryptNo:
		return "not encrypted but for the login (encrypt=false): who sees or changes the traffic sees and changes leases", verify
	case a.trust:
		return "encrypted, but the server's certificate isn't verified (trustServerCertificate=true)", verify
	}
	return "encrypted, and the server's certificate is verified", ""
}

// oldestVersion is SQL Server 2016: the first with DATEDIFF_BIG and SESSION_CONTEXT. Azure's and managed instances' is 12
// for ever.
const oldestVersion = 13

// The values of SERVERPROPERTY('EngineEdition'):
// https://learn.microsoft.com/sql/t-sql/functions/serverproperty-transact-sql
const (
	editionAzure   = "5"
	editionManaged = "8"
	editionFabric  = "12"
)

// editions are those that keep ledgers. Azure Synapse (6 and 11) enforces no keys.
var editions = []string{"1", "2", "3", "4", editionAzure, editionManaged, "9", editionFabric}

// serverFlaws are the reasons why a server or its database is unfit.
func (f *facts) serverFlaws() []storekit.Flaw {
	flaws := sqldb.Flaws{Check: CheckServer}
	v := f.values
	if strings.Contains(strings.ToLower(v[valueBanner]), "babelfish") || !slices.Contains(editions, v[valueEdition]) {
		flaws.Add("use SQL Server or Azure SQL Database", "the server is %.80s (engine edition %.20s), of which nothing is known, or which enforces no keys", v[valueBanner], v[valueEdition])
	} else if !f.hosted() && f.version() < oldestVersion {
		flaws.Add("use SQL Server 2016 or later", "the server has the version %.60s", v[valueVersion])
	}
	if v[valueUpdate] != "READ_WRITE" {
		flaws.Add(nameTheRightOne, "the database takes no writes here (Updateability is %.40s)", v[valueUpdate])
	}
	if strings.EqualFold(v[valueDatabase], "tempdb") {
		flaws.Add("use another database", "the database is tempdb, which the server empties whenever it starts: two workers may then hold one slot")
	}
	if v[valueDelayed] == "FORCED" {
		flaws.Add("ALTER DATABASE … SET DELAYED_DURABILITY = ALLOWED, or DISABLED",
			"the database acknowledges what isn't on the disk yet (DELAYED_DURABILITY = FORCED): a crash loses the newest records, and two workers may hold one slot")
	}
	return flaws.All
}

// version is the server's major version, or 0.
func (f *facts) version() int {
	major, _, _ := strings.Cut(f.values[valueVersion], ".")
	n, _ := strconv.Atoi(major)
	return n
}

// leastType is the least size of the column of worker types, in bytes.
const leastType = 63

// ledgerColumns are the columns of the records' table.
var ledgerColumns = []sqldb.Column{
	{Name: "worker_type", Type: fmt.Sprintf("varbinary(%d) or longer", leastType), Why: ": others may take two names for one", Fits: func(c sqldb.Column) bool {
		return strings.HasPrefix(c.Type, "varbinary(") && (c.Length < 0 || c.Length >= leastType)
	}},
	{Name: "seq", Type: "bigint", Fits: func(c sqldb.Column) bool { return c.Type == "bigint" }},
	{Name: "document", Type: "nvarchar(max)", Why: ": others don't keep each character of a record", Fits: func(c sqldb.Column) bool {
		return c.Type == "nvarchar(-1)"
	}},
}

// tableFlaws are the reasons why the table of the records is unfit that only SQL Server's have.
func tableFlaws(f *facts, flaws *sqldb.Flaws) {
	r := f.table
	if r.kinds != "" {
		flaws.Add(sqldb.AnotherTable, "is of a kind that keeps records in another way: %.60s", r.kinds)
	}
	if len(r.policies) > 0 {
		flaws.AddTo(store.CheckConstraints, "drop them, or leave the table out of them", "has row-level security policies, which hide records or keep them out: %s", sqldb.Names(r.policies))
	}
	if r.keyOff {
		flaws.Add("ALTER INDEX … REBUILD", "has a primary key that is disabled: %.120s", r.key)
	}
	if r.ignores {
		flaws.Add("ALTER INDEX … SET (IGNORE_DUP_KEY = OFF)", "has a primary key that drops duplicates without an error (IGNORE_DUP_KEY): %.120s", r.key)
	}
}

// askRight is 1 if the user has a right on a table, 0 if not, and NULL if it knows of no such table.
const askRight = `SELECT CONVERT(nvarchar(1), HAS_PERMS_BY_NAME(N'TABLE', N'OBJECT', N'RIGHT'));`

// askRight asks whether the user has a right on a table.
func (l *Ledger) askRight(table, right string) string {
	return strings.NewReplacer("TABLE", quoted(l.address.Schema, table), "RIGHT", right).Replace(askRight)
}

// lacks names the rights on a table that the user lacks; empty if it has all.
func (l *Ledger) lacks(ctx context.Context, _ *facts, table string, rights ...string) (string, error) {
	return sqldb.Lacking("OBJECT::"+l.address.Name(table), rights, func(right string) (bool, error) {
		found, err := l.ask(ctx, l.askRight(table, right))
		if err == nil && (len(found) != 1 || found[0][0] == "") {
			err = fmt.Errorf("%w: there is no table %s, or the user may not know of it", store.ErrMissing, l.address.Name(table))
		}
		return err == nil && found[0][0] == "1", err
	})
}
