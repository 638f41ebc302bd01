//go:build sqlserver

package sqlserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Examiner = (*Ledger)(nil)

// Examine asks the server for its settings, its catalog and the user's rights. It stores nothing.
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
	l.examineFacts(e, f)
	if f.ledger == nil {
		l.examineAbsent(ctx, e)
	} else {
		for i, need := range [][]string{{"SELECT", "INSERT"}, {"SELECT"}, {"SELECT", "DELETE"}} {
			level := map[bool]store.Level{true: store.LevelWarn, false: store.LevelFail}[i == 2]
			l.examineRight(ctx, e, []string{store.CheckAppend, store.CheckRead, store.CheckTrim}[i], level, f, l.address.table, need)
		}
	}
	if f.roster == nil {
		e.Add(storekit.Flaw{Check: store.CheckRoster, Remedy: "leasectl init", What: fmt.Sprintf("there is no table %s%s", l.address.name(), rosterSuffix)}.Finding(store.LevelWarn))
		return e.Found, nil
	}
	l.examineRight(ctx, e, store.CheckRoster, store.LevelWarn, f, l.address.table+rosterSuffix, []string{"SELECT", "INSERT", "UPDATE", "DELETE"})
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
		return f
	}
	why, unfit := storekit.AllUnfit(err)
	if !unfit {
		why, unfit = ofServer(err)
	}
	if unfit {
		answered()
		e.Add(storekit.Flaw{Check: CheckServer, What: why.Why, Remedy: nameTheRightOne}.Finding(store.LevelFail))
		return nil
	}
	e.Failed(store.CheckConnection, store.LevelFail, errors.Unwrap(err)) // without the name of the operation
	e.Add(unproven("no connection; besides, "))
	return nil
}

// unproven is the finding that this store is untested, after what else is said of the server.
func unproven(before string) store.Finding {
	return storekit.Flaw{
		Check: CheckServer, What: before + "this store is untested: it was never run on a real server, and promises what the server's documentation does",
		Remedy: "run its suite on a server like yours: SLOTLEASE_SQLSERVER=sqlserver://… go test -tags sqlserver ./store/sqlserver",
	}.Finding(store.LevelWarn)
}

// examineTLS says how the connection is secured.
func (l *Ledger) examineTLS(e *storekit.Exam) {
	warn := func(what string) {
		e.Add(storekit.Flaw{Check: store.CheckTLS, What: what, Remedy: "use encrypt=true or strict, with tlsCA if the server's authority isn't one of the system's"}.Finding(store.LevelWarn))
	}
	switch a := &l.address; {
	case a.encrypt == encryptNo && a.Loopback():
		e.OK(store.CheckTLS, "not encrypted but for the login, to this machine alone")
	case a.encrypt == encryptNo:
		warn("not encrypted but for the login (encrypt=false): who sees or changes the traffic sees and changes leases")
	case a.trust:
		warn("encrypted, but the server's certificate isn't verified (trustServerCertificate=true)")
	default:
		e.OK(store.CheckTLS, "encrypted, and the server's certificate is verified")
	}
}

// examineFacts judges the server, its database and the table.
func (l *Ledger) examineFacts(e *storekit.Exam, f *facts) {
	if flaws := f.serverFlaws(); len(flaws) > 0 {
		e.Flaws(CheckServer, store.LevelFail, flaws, "")
	} else {
		e.Add(unproven(fmt.Sprintf("SQL Server %s takes writes, %s; but ", f.values[valueVersion], f.server)))
	}
	e.Flaws(CheckDurability, store.LevelWarn, f.durabilityFlaws(), fmt.Sprintf("crash: %s Power: %s Failover: %s", f.crash(), f.power(), f.failover()))
	if skew := l.skewBy(f); skew == 0 {
		e.OK(store.CheckServerClocks, "there is only one: that of "+f.server)
	} else {
		e.OK(store.CheckServerClocks, fmt.Sprintf("apart by %v at most, as is assumed (serverSkew)", skew))
	}
	if f.ledger == nil {
		return
	}
	e.OK(store.CheckLedger, fmt.Sprintf("the table %s is there", l.address.name()))
	flaws := l.tableFlaws(f.ledger)
	e.Flaws(CheckTable, store.LevelFail, flaws, "with the key (worker_type, seq), byte by byte")
	e.Flaws(store.CheckConstraints, store.LevelFail, flaws, "nothing but the key keeps records out, as far as the user may know (policies: with VIEW DEFINITION)")
	e.OK(store.CheckExpiry, "a table has no expiry; what jobs and other programs delete isn't known")
}

// skewBy is the skew of stamps when some facts are known.
func (l *Ledger) skewBy(f *facts) (skew time.Duration) {
	if skew = l.skew(); skew == 0 && f.several() {
		skew = defaultSkew
	}
	return skew
}

// examineAbsent says why there is no table.
func (l *Ledger) examineAbsent(ctx context.Context, e *storekit.Exam) {
	err := l.absent(ctx)
	others := []string{CheckTable, store.CheckExpiry, store.CheckConstraints, store.CheckAppend, store.CheckTrim}
	if errors.Is(l.meaning(err).Is, store.ErrDenied) {
		e.Failed(store.CheckRead, store.LevelFail, err)
		e.Skip("the user may not know of the table", append(others, store.CheckLedger)...)
		return
	}
	e.Add(storekit.Flaw{Check: store.CheckLedger, What: err.Error(), Remedy: "leasectl init"}.Finding(store.LevelFail))
	e.Skip("there is no table", append(others, store.CheckRead)...)
}

// examineRight judges rights on a table.
func (l *Ledger) examineRight(ctx context.Context, e *storekit.Exam, check string, level store.Level, f *facts, table string, need []string) {
	lacks, err := storekit.RunUnchecked(ctx, l.runner, "examine", "", func(ctx context.Context) (string, error) { return l.lacks(ctx, table, need...) })
	user := f.values[valueUser]
	switch {
	case err != nil:
		e.Failed(check, store.LevelSkip, errors.Unwrap(err))
	case lacks == "":
		e.OK(check, "granted to "+user)
	default:
		e.Add(storekit.Flaw{Check: check, What: fmt.Sprintf("the user %s lacks %s", user, lacks), Remedy: fmt.Sprintf("GRANT %s TO the user", lacks)}.Finding(level))
	}
}
