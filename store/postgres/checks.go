package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone.
const (
	// CheckServer: the server is PostgreSQL, the primary, and keeps what it is given.
	CheckServer = sqldb.CheckServer
	// CheckPooler: what is between here and the server passes transactions on.
	CheckPooler = "pooler"
	// CheckPool: what the application's pool lends leads to servers that are known, and means what statements say.
	CheckPool = "pool"
	// CheckTable: the tables are ordinary ones, with the columns and the key of a ledger.
	CheckTable = sqldb.CheckTable
	// CheckDurability: a crash, a loss of power and a failover lose nothing that was acknowledged.
	CheckDurability = sqldb.CheckDurability
)

// checks are those of the server, and of the way to it.
func (l *Ledger) checks() []sqldb.Check[*facts] {
	checks := []sqldb.Check[*facts]{
		{Name: CheckServer, Refuses: true, Flaws: serverFlaws, Sound: func(f *facts) (string, error) {
			return fmt.Sprintf("PostgreSQL %d.%d, the primary, %s", f.Number/10000, f.Number%10000, f.Server), nil
		}},
		l.core.CheckTLS(l.secured),
		{Name: CheckPooler, Sound: func(f *facts) (string, error) {
			if f.pooled {
				return "there is one, which allows transactions: workers get no hints, and look when the time has come", nil
			}
			return "there is none", nil
		}},
		l.core.CheckDurability(l.durabilityFlaws, nil),
	}
	if l.core.Lender != nil {
		checks = append(checks, sqldb.Check[*facts]{Name: CheckPool, Ask: l.examinePool})
	}
	return checks
}

// nameThePrimary is what to do about a server that takes no writes.
const nameThePrimary = "name the primary, or all servers, and in a pool of the application's target_session_attrs=read-write"

// unusable is what is wrong with a server that answered that it takes no writes, or with a pooler.
func unusable(err error) (storekit.Flaw, bool) {
	if why, all := storekit.AllUnfit(err); all {
		return storekit.Flaw{Check: CheckServer, What: why.Why, Remedy: nameThePrimary}, true
	}
	flaw, ok := errors.AsType[storekit.Flaw](err)
	return flaw, ok && flaw.Check == CheckPooler
}

// oldest is the oldest version that is used, as server_version_num has it.
const oldest = 100000

// otherServers are servers that speak the protocol, and whose nodes have clocks or keys of their own.
var otherServers = regexp.MustCompile(`-YB-|Greenplum|Redshift|Materialize|CockroachDB`)

// serverFlaws are the reasons why a server is unfit.
func serverFlaws(f *facts) []storekit.Flaw {
	flaws := sqldb.Flaws{Check: CheckServer, Of: "the server "}
	if !strings.HasPrefix(f.Version, "PostgreSQL ") || otherServers.MatchString(f.Version) {
		flaws.Add("use PostgreSQL", "is %.60s, of which nothing is known", f.Version)
	}
	if f.Number < oldest {
		flaws.Add("use version 10 or later", "has the version %d", f.Number)
	}
	if f.Encoding != "UTF8" {
		flaws.Add("use a database with the encoding UTF8", "keeps texts of the database in %.20s, which can't hold all that a record may have", f.Encoding)
	}
	return flaws.All
}

// byteOrder are the collations that compare byte by byte.
var byteOrder = []string{"C", "POSIX", "ucs_basic", "C.UTF-8", "C.utf8", "pg_c_utf8"}

// ledgerColumns are the columns of the records' table.
var ledgerColumns = []sqldb.Column{
	{
		Name: "worker_type", Type: `text COLLATE "C"`, Why: ": others may take two names for one, and change with the operating system",
		Fits: func(c sqldb.Column) bool {
			collation, isText := strings.CutPrefix(c.Type, "text COLLATE ")
			return isText && slices.Contains(byteOrder, collation)
		},
	},
	{Name: "seq", Type: "bigint", Fits: func(c sqldb.Column) bool { return c.Type == "int8" }},
	{Name: "document", Type: "json", Fits: func(c sqldb.Column) bool { return c.Type == "json" }},
}

// tableFlaws are the reasons why the table of the records is unfit that only PostgreSQL's have.
func tableFlaws(f *facts, flaws *sqldb.Flaws) {
	r := f.LedgerTable
	switch r.Persistence {
	case "p":
	case "u":
		flaws.Add("ALTER TABLE … SET LOGGED, while no worker works", "is unlogged: a crash empties it, and standbys don't have it")
	default:
		flaws.Add(sqldb.AnotherTable, "is temporary")
	}
	if r.Partition || len(r.Parents) > 0 {
		flaws.Add(sqldb.AnotherTable, "is a part of %s, and goes with that", sqldb.Names(r.Parents))
	}
	if len(r.Children) > 0 {
		flaws.Add("ALTER TABLE … NO INHERIT", "has tables that inherit from it, whose rows have keys of their own: %s", sqldb.Names(r.Children))
	}
	if r.RowSecurity {
		flaws.AddTo(store.CheckConstraints, "ALTER TABLE … DISABLE ROW LEVEL SECURITY", "has row-level security, which hides records from some users")
	}
	if len(r.Rules) > 0 {
		flaws.AddTo(store.CheckConstraints, "drop them", "has rules, which change what statements do: %s", sqldb.Names(r.Rules))
	}
	if r.Subscriptions > 0 {
		flaws.AddTo(store.CheckConstraints, "take it out of the publication", "is written by a subscription, so that another server has keys of its own")
	}
}

// statementMode makes the refusal of a pooler that allows no transactions a flaw.
func statementMode(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && strings.Contains(e.Message, "statement pooling mode") {
		return storekit.Flaw{
			Check: CheckPooler, What: "the pooler allows no transactions (pool_mode = statement)", Remedy: "use pool_mode = transaction or session",
		}.Refuse()
	}
	return err
}

// secured says how connections are, and what to do about it. The driver goes by more than sslmode: there is no TLS on a Unix socket, and
// sslrootcert, perhaps that of the environment, has it verify more.
func (l *Ledger) secured() (text, remedy string) {
	const verify = "use sslmode=verify-full, with sslrootcert if the server's authority isn't one of the system's"
	mode, here := l.address.sslmode, l.address.Loopback()
	var by *tls.Config // that of any host, since they differ in its name alone
	for _, ways := range hostsOf(&l.config.Config) {
		for _, way := range ways {
			by = cmp.Or(way.TLSConfig, by)
		}
	}
	switch {
	case by == nil && here:
		return "not encrypted, to this machine alone", ""
	case by == nil:
		return "not encrypted (sslmode=disable): who sees or changes the traffic sees and changes leases", verify
	case !by.InsecureSkipVerify:
		return "encrypted, and the server's certificate is verified", ""
	case by.VerifyPeerCertificate != nil:
		text = "encrypted, but the name in the server's certificate isn't verified (sslmode=" + mode + ")"
	case mode == "prefer":
		text = "encrypted if the server can (sslmode=prefer)"
	case mode == "allow":
		text = "encrypted only if the server demands it (sslmode=allow)"
	default:
		text = "encrypted, but the server's certificate isn't verified (sslmode=require)"
	}
	if here {
		return text + ", to this machine alone", ""
	}
	return text, verify
}

// unasked says that not all standbys are named, or not all that are named connected.
func (l *Ledger) unasked(f *facts) string {
	if f.Standbys > len(f.Clocks) || len(f.Clocks) == 0 && l.core.Assumed() > 0 {
		return "standbys that the URI doesn't name, or that don't answer, can't be asked: name all servers"
	}
	return ""
}

// lacks names the rights on a table that the user lacks; empty if it has all.
func (l *Ledger) lacks(ctx context.Context, f *facts, table string, rights ...string) (string, error) {
	if f == nil {
		var err error
		if f, err = l.look(ctx); err != nil {
			return "", err
		}
	}
	r := f.LedgerTable
	if table != l.address.Table {
		r = f.RosterTable
	}
	switch {
	case r == nil:
		return "", l.core.Missing()
	case !f.Usage:
		return "USAGE ON SCHEMA " + l.address.Schema, nil
	}
	has := map[string]bool{"SELECT": r.Select, "INSERT": r.Insert, "UPDATE": r.Update, "DELETE": r.Delete}
	return sqldb.Lacking(l.address.Name(table), rights, func(right string) (bool, error) { return has[right], nil })
}
