package sqldb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// rights are what a worker needs of the tables, and how bad it is without.
var rights = []struct {
	check string
	level store.Level
	needs []string
}{
	{store.CheckAppend, store.LevelFail, []string{"SELECT", "INSERT"}},
	{store.CheckRead, store.LevelFail, []string{"SELECT"}},
	{store.CheckTrim, store.LevelWarn, []string{"SELECT", "DELETE"}},
	{store.CheckRoster, store.LevelWarn, []string{"SELECT", "INSERT", "UPDATE", "DELETE"}},
}

// Examine asks the server for its settings, its catalog and the user's rights. It stores nothing.
func (l *Ledger[F]) Examine(ctx context.Context) ([]store.Finding, error) {
	return l.c.exam().Examine(ctx)
}

// exam is one examination: what the server has said, or why no operation can use it, for the rows that judge it.
type exam[F Facts] struct {
	*Core[F]

	facts    atomic.Pointer[F]
	unusable atomic.Pointer[storekit.Flaw]
}

func (c *Core[F]) exam() *storekit.Checks {
	x := &exam[F]{Core: c}
	rows := []storekit.Check{{Name: store.CheckConnection, Level: store.LevelFail, Ask: x.survey, Needed: "no connection"}}
	for _, check := range c.checks() {
		level := store.LevelWarn
		if check.Refuses || ofTable[check.Name] {
			level = store.LevelFail
		}
		if check.Ask != nil {
			rows = append(rows, storekit.Check{Name: check.Name, Level: level, Alone: true, Ask: func(context.Context) (string, error) { return check.Ask() }})
		} else if check.Sound != nil {
			rows = append(rows, x.row(check.Name, level, func(_ context.Context, f F) (string, error) { return x.judge(check, f) }))
		}
	}
	rows = append(rows, x.row(store.CheckLedger, store.LevelFail, x.ledger))
	for _, r := range rights {
		rows = append(rows, x.row(r.check, r.level, func(ctx context.Context, f F) (string, error) { return x.right(ctx, f, r.check, r.needs) }))
	}
	return &storekit.Checks{Rows: rows, Runner: c.Runner, Clock: c.Clock}
}

// survey asks for the facts.
func (x *exam[F]) survey(ctx context.Context) (string, error) {
	f, err := x.Survey(ctx)
	if err != nil {
		flaw, is := x.parts.Unusable(err)
		if !is {
			return "", err
		}
		flaw.Level = store.LevelFail
		x.unusable.Store(&flaw)
	}
	x.facts.Store(&f)
	return x.Place() + " answered", nil
}

// row is one that judges what the server has said.
func (x *exam[F]) row(name string, level store.Level, judge func(ctx context.Context, f F) (string, error)) storekit.Check {
	return storekit.Check{Name: name, Level: level, Ask: func(ctx context.Context) (string, error) {
		switch flaw := x.unusable.Load(); {
		case flaw == nil:
			return judge(ctx, *x.facts.Load())
		case flaw.Check == name:
			return storekit.Found("", *flaw)
		}
		return "", storekit.Skip("no connection that can be used")
	}}
}

// ofTable are the checks that need a table.
var ofTable = map[string]bool{CheckTable: true, store.CheckConstraints: true, store.CheckExpiry: true}

// noTable is why what is asked of a table isn't.
const noTable = storekit.Skip("there is no table")

// judge says what is wrong by a check, whichever row of the table of checks has found it.
func (x *exam[F]) judge(check Check[F], f F) (string, error) {
	if f.Shared().Ledger == nil && ofTable[check.Name] {
		return "", noTable
	}
	var flaws []storekit.Flaw
	for _, row := range x.checks() {
		for _, find := range []func(f F) []storekit.Flaw{row.Flaws, row.Aside} {
			if find != nil {
				flaws = append(flaws, find(f)...)
			}
		}
	}
	flaws = slices.DeleteFunc(flaws, func(flaw storekit.Flaw) bool { return flaw.Check != check.Name })
	if len(flaws) > 0 {
		return storekit.Found("", flaws...)
	}
	return check.Sound(f)
}

// ledger says whether the table of the records is there.
func (x *exam[F]) ledger(ctx context.Context, f F) (string, error) {
	if f.Shared().Ledger != nil {
		return fmt.Sprintf("the table %s is there", x.Name()), nil
	}
	err := x.Absent(ctx)
	if x.denied(err) {
		return "", storekit.Skip("the user may not know of the table")
	}
	return storekit.Found("", storekit.Flaw{Check: store.CheckLedger, What: err.Error(), Remedy: "leasectl init"})
}

// right judges rights on a table.
func (x *exam[F]) right(ctx context.Context, f F, check string, needs []string) (string, error) {
	table, there, user := x.Address.Table, f.Shared().Ledger, f.Shared().User
	if check == store.CheckRoster {
		table, there = table+RosterSuffix, f.Shared().Roster
	}
	switch {
	case there == nil && check == store.CheckRoster:
		return storekit.Found("", storekit.Flaw{Check: check, What: "there is no table " + x.Address.Name(table), Remedy: "leasectl init"})
	case there == nil && check == store.CheckRead:
		if err := x.Absent(ctx); x.denied(err) {
			return "", err
		}
		return "", noTable
	case there == nil:
		return "", noTable
	}
	lacks, err := x.parts.Lacks(ctx, f, table, needs...)
	if err != nil {
		return "", err
	}
	if lacks != "" {
		return storekit.Found("", storekit.Flaw{
			Check: check, What: fmt.Sprintf("the user %s lacks %s", user, lacks), Remedy: fmt.Sprintf("GRANT %s TO %s", lacks, cmp.Or(x.parts.Grantee, user)),
		})
	}
	return "granted to " + user, nil
}

// Lacking names the rights on a table that has reports a user not to have; empty if it has all.
func Lacking(table string, rights []string, has func(right string) (bool, error)) (string, error) {
	var none []string
	for _, right := range rights {
		ok, err := has(right)
		if err != nil {
			return "", err
		}
		if !ok {
			none = append(none, right)
		}
	}
	if len(none) == 0 {
		return "", nil
	}
	return strings.Join(none, ", ") + " ON " + table, nil
}
