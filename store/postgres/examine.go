package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Examiner = (*Ledger)(nil)

// Examine asks the server's settings and catalog, also for the user's rights. It stores nothing.
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
	if f.pooled {
		e.OK(CheckPooler, "there is one, which allows transactions: workers get no hints, and look when the time has come")
	} else {
		e.OK(CheckPooler, "there is none")
	}
	e.Flaws(CheckDurability, store.LevelWarn, f.durabilityFlaws(), f.durable())
	l.examineClocks(e, f)
	l.examineTables(e, f)
	return e.Found, nil
}

// examineConnection asks for the facts; nil if there are none.
func (l *Ledger) examineConnection(ctx context.Context, e *storekit.Exam) *facts {
	ctx, cancel := e.First(ctx)
	defer cancel()
	began := l.clock.Now()
	f, err := storekit.RunUnchecked(ctx, l.runner, "examine", "", l.look)
	if err == nil {
		e.OK(store.CheckConnection, fmt.Sprintf("%s answered three times in %v", l.address.place(), e.Since(began)))
		e.Flaws(CheckServer, store.LevelFail, f.serverFlaws(), fmt.Sprintf("PostgreSQL %d.%d, the primary, %s", f.Number/10000, f.Number%10000, f.Server))
		return f
	}
	shown := errors.Unwrap(err) // without the name of the operation
	if why, all := allUnfit(err); all {
		e.OK(store.CheckConnection, fmt.Sprintf("%s answered in %v", l.address.place(), e.Since(began)))
		e.Add(storekit.Flaw{Check: CheckServer, What: why.Why, Remedy: "name the primary, or all servers"}.Finding(store.LevelFail))
		e.Skip("no connection that can be used", CheckPooler)
		return nil
	}
	if flaw, ok := errors.AsType[storekit.Flaw](err); ok && flaw.Check == CheckPooler {
		e.OK(store.CheckConnection, fmt.Sprintf("%s answered in %v", l.address.place(), e.Since(began)))
		e.Failed(CheckPooler, store.LevelFail, shown)
		e.Skip("no connection that can be used", CheckServer)
		return nil
	}
	e.Failed(store.CheckConnection, store.LevelFail, shown)
	e.Skip("no connection", CheckServer, CheckPooler)
	return nil
}

// examineTLS says how the connection is secured.
func (l *Ledger) examineTLS(e *storekit.Exam) {
	warn := func(what string) {
		e.Add(storekit.Flaw{Check: store.CheckTLS, What: what, Remedy: "use sslmode=verify-full, with sslrootcert if the server's authority isn't one of the system's"}.Finding(store.LevelWarn))
	}
	mode := l.address.sslmode
	switch {
	case mode == "disable" && l.address.Loopback():
		e.OK(store.CheckTLS, "not encrypted, to this machine alone")
	case mode == "disable":
		warn("not encrypted (sslmode=disable): who sees or changes the traffic sees and changes leases")
	case mode == "verify-full":
		e.OK(store.CheckTLS, "encrypted, and the server's certificate is verified")
	case mode == "verify-ca":
		warn("encrypted, but the name in the server's certificate isn't verified (sslmode=verify-ca)")
	case l.address.Loopback():
		e.OK(store.CheckTLS, "encrypted if the server can, to this machine alone")
	default:
		warn("encrypted, but the server's certificate isn't verified (sslmode=require)")
	}
}

// durable says what keeps acknowledged records.
func (f *facts) durable() string {
	if f.SyncNames == "" {
		return "commits wait for the disk; there is no standby, so that there is no failover"
	}
	return "commits wait for the disk, and for the synchronous standbys"
}

// examineClocks says how far the servers' clocks may be apart.
func (l *Ledger) examineClocks(e *storekit.Exam, f *facts) {
	switch skew := l.skew(); {
	case skew == 0 && f.Standbys == 0:
		e.OK(store.CheckServerClocks, "there is only one: that of "+f.Server)
	case skew == 0:
		e.OK(store.CheckServerClocks, fmt.Sprintf("apart by %v at most, as is assumed (serverSkew)", defaultSkew))
	default:
		e.OK(store.CheckServerClocks, fmt.Sprintf("apart by %v at most, as is assumed (serverSkew)", skew))
	}
}

// examineTables judges the tables, and the user's rights on them.
func (l *Ledger) examineTables(e *storekit.Exam, f *facts) {
	rights := []string{store.CheckAppend, store.CheckRead, store.CheckTrim}
	if f.Ledger == nil {
		e.Add(storekit.Flaw{Check: store.CheckLedger, What: l.missing().Error(), Remedy: "leasectl init"}.Finding(store.LevelFail))
		e.Skip("there is no table", append(rights, CheckTable, store.CheckExpiry, store.CheckConstraints)...)
	} else {
		e.OK(store.CheckLedger, fmt.Sprintf("the table %s.%s is there", l.address.schema, l.address.table))
		flaws := l.tableFlaws(f.Ledger)
		e.Flaws(CheckTable, store.LevelFail, flaws, "an ordinary table with the key (worker_type, seq), in byte order")
		e.Flaws(store.CheckConstraints, store.LevelFail, flaws, "nothing but the key keeps records out")
		e.OK(store.CheckExpiry, "a table has no expiry; what jobs and other programs delete isn't known")
		for i, need := range [][]string{{"SELECT", "INSERT"}, {"SELECT"}, {"SELECT", "DELETE"}} {
			level := map[bool]store.Level{true: store.LevelWarn, false: store.LevelFail}[i == 2]
			l.examineRight(e, rights[i], level, f, f.Ledger, l.address.table, need)
		}
	}
	roster := l.address.table + rosterSuffix
	if f.Roster == nil {
		e.Add(storekit.Flaw{Check: store.CheckRoster, What: fmt.Sprintf("there is no table %s.%s", l.address.schema, roster), Remedy: "leasectl init"}.Finding(store.LevelWarn))
		return
	}
	l.examineRight(e, store.CheckRoster, store.LevelWarn, f, f.Roster, roster, []string{"SELECT", "INSERT", "UPDATE", "DELETE"})
}

// examineRight judges rights on a table.
func (l *Ledger) examineRight(e *storekit.Exam, check string, level store.Level, f *facts, r *relation, table string, need []string) {
	lacks := l.lacks(f, r, table, need...)
	if lacks == "" {
		e.OK(check, fmt.Sprintf("granted to %s", f.User))
		return
	}
	e.Add(storekit.Flaw{Check: check, What: fmt.Sprintf("the user %s lacks %s", f.User, lacks), Remedy: fmt.Sprintf("GRANT %s TO %s", lacks, f.User)}.Finding(level))
}
