package mysql

import (
	"context"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Examiner = (*Ledger)(nil)

// Examine asks the server for its settings, its information schema and the user's rights. It stores nothing.
func (l *Ledger) Examine(ctx context.Context) ([]store.Finding, error) {
	if l.runner.Closed() {
		return nil, l.runner.Failed(ctx, "examine", "", store.ErrClosed)
	}
	e := &storekit.Exam{Clock: l.clock, Scrub: func(text string) string { return l.secrets.Scrub(text) }}
	f := l.examineConnection(ctx, e)
	l.examineTLS(e)
	if f == nil {
		e.Skip("no connection that can be used", CheckDurability, store.CheckServerClocks, store.CheckLedger, CheckTable, store.CheckExpiry, store.CheckConstraints,
			store.CheckAppend, store.CheckRead, store.CheckTrim, store.CheckRoster)
		return e.Found, nil
	}
	if f.proxied {
		e.OK(CheckProxy, "there is one, which sends all statements to the server that takes writes")
	} else {
		e.OK(CheckProxy, "there is none")
	}
	d := store.Durability{Crash: f.crash(), Power: f.power(), Failover: f.failover()}
	e.Flaws(CheckDurability, store.LevelWarn, f.durabilityFlaws(), fmt.Sprintf("crash: %s Power: %s Failover: %s", d.Crash, d.Power, d.Failover))
	l.examineClocks(e, f)
	l.examineTables(ctx, e, f)
	return e.Found, nil
}

// examineConnection asks for the facts; nil if there are none.
func (l *Ledger) examineConnection(ctx context.Context, e *storekit.Exam) *facts {
	ctx, cancel := e.First(ctx)
	defer cancel()
	began := l.clock.Now()
	f, err := storekit.RunUnchecked(ctx, l.runner, "examine", "", l.look)
	answered := func() {
		e.OK(store.CheckConnection, fmt.Sprintf("%s answered in %v", l.address.place(), e.Since(began)))
	}
	if err == nil {
		answered()
		e.Flaws(CheckServer, store.LevelFail, f.serverFlaws(), fmt.Sprintf("%s %s takes writes, %s", l.product(f), f.variables["version"], f.server))
		return f
	}
	if why, all := storekit.AllUnfit(err); all {
		answered()
		e.Add(storekit.Flaw{Check: CheckServer, What: why.Why, Remedy: nameTheRightOne}.Finding(store.LevelFail))
		e.Skip("no connection that can be used", CheckProxy)
		return nil
	}
	if why, is := ofServer(err); is {
		answered()
		e.Add(storekit.Flaw{Check: CheckProxy, What: why.Why, Remedy: proxyRemedy}.Finding(store.LevelFail))
		e.Skip("no connection that can be used", CheckServer)
		return nil
	}
	e.Failed(store.CheckConnection, store.LevelFail, errors.Unwrap(err)) // without the name of the operation
	e.Skip("no connection", CheckServer, CheckProxy)
	return nil
}

// product names the server's maker.
func (l *Ledger) product(f *facts) string {
	if f.mariadb {
		return "MariaDB"
	}
	return "MySQL"
}

// examineTLS says how the connection is secured.
func (l *Ledger) examineTLS(e *storekit.Exam) {
	warn := func(what string) {
		e.Add(storekit.Flaw{Check: store.CheckTLS, What: what, Remedy: "use tls=true, with tlsCA if the server's authority isn't one of the system's"}.Finding(store.LevelWarn))
	}
	switch mode := l.address.tls; {
	case mode == tlsOff && l.address.Loopback():
		e.OK(store.CheckTLS, "not encrypted, to this machine alone")
	case mode == tlsOff:
		warn("not encrypted (tls=false): who sees or changes the traffic sees and changes leases")
	case mode == tlsSkip:
		warn("encrypted, but the server's certificate isn't verified (tls=skip-verify)")
	default:
		e.OK(store.CheckTLS, "encrypted, and the server's certificate is verified")
	}
}

// examineClocks says how far the servers' clocks may be apart.
func (l *Ledger) examineClocks(e *storekit.Exam, f *facts) {
	switch skew := l.skew(); {
	case skew == 0 && !f.several():
		e.OK(store.CheckServerClocks, "there is only one: that of "+f.server)
	case skew == 0:
		e.OK(store.CheckServerClocks, fmt.Sprintf("apart by %v at most, as is assumed (serverSkew)", defaultSkew))
	default:
		e.OK(store.CheckServerClocks, fmt.Sprintf("apart by %v at most, as is assumed (serverSkew)", skew))
	}
}

// examineTables judges the tables, and the user's rights on them.
func (l *Ledger) examineTables(ctx context.Context, e *storekit.Exam, f *facts) {
	rights := []string{store.CheckAppend, store.CheckRead, store.CheckTrim}
	if f.ledger == nil {
		err := l.absent(ctx)
		if errors.Is(l.meaning(err).Is, store.ErrDenied) {
			e.Failed(store.CheckRead, store.LevelFail, err)
			e.Skip("the user may not know of the table", store.CheckLedger, CheckTable, store.CheckExpiry, store.CheckConstraints, store.CheckAppend, store.CheckTrim)
		} else {
			e.Add(storekit.Flaw{Check: store.CheckLedger, What: err.Error(), Remedy: "leasectl init"}.Finding(store.LevelFail))
			e.Skip("there is no table", append(rights, CheckTable, store.CheckExpiry, store.CheckConstraints)...)
		}
	} else {
		e.OK(store.CheckLedger, fmt.Sprintf("the table %s.%s is there", l.address.Database, l.address.table))
		flaws := l.tableFlaws(f.ledger)
		e.Flaws(CheckTable, store.LevelFail, flaws, "InnoDB's, with the key (worker_type, seq), byte by byte")
		e.Flaws(store.CheckConstraints, store.LevelFail, flaws, "nothing but the key keeps records out, as far as the user may know (triggers: with the right TRIGGER)")
		e.OK(store.CheckExpiry, "a table has no expiry; what events, jobs and other programs delete isn't known")
		for i, need := range [][]string{{"SELECT", "INSERT"}, {"SELECT"}, {"SELECT", "DELETE"}} {
			level := map[bool]store.Level{true: store.LevelWarn, false: store.LevelFail}[i == 2]
			l.examineRight(ctx, e, rights[i], level, f, "LEDGER", need)
		}
	}
	if f.roster == nil {
		e.Add(storekit.Flaw{
			Check: store.CheckRoster, Remedy: "leasectl init",
			What: fmt.Sprintf("there is no table %s.%s%s", l.address.Database, l.address.table, rosterSuffix),
		}.Finding(store.LevelWarn))
		return
	}
	l.examineRight(ctx, e, store.CheckRoster, store.LevelWarn, f, "ROSTER", []string{"SELECT", "INSERT", "UPDATE", "DELETE"})
}

// examineRight judges rights on a table.
func (l *Ledger) examineRight(ctx context.Context, e *storekit.Exam, check string, level store.Level, f *facts, table string, need []string) {
	lacks, err := storekit.RunUnchecked(ctx, l.runner, "examine", "", func(ctx context.Context) (string, error) { return l.lacks(ctx, table, need...) })
	switch {
	case err != nil:
		e.Failed(check, store.LevelSkip, errors.Unwrap(err))
	case lacks == "":
		e.OK(check, fmt.Sprintf("granted to %s", f.user))
	default:
		e.Add(storekit.Flaw{Check: check, What: fmt.Sprintf("the user %s lacks %s", f.user, lacks), Remedy: fmt.Sprintf("GRANT %s TO %s", lacks, f.user)}.Finding(level))
	}
}
