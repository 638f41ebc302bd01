package sqldb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Ledger is a ledger in two tables: a row for each record, with the key and the record as JSON, and a row for each presence.
type Ledger[F Facts] struct{ c *Core[F] }

// follow has new connections log in as the URI in a file says by then.
func (l *Ledger[F]) follow(logins *storekit.Renewed[*Address]) { l.c.Logins = logins }

// String names the table and the hosts, never a password.
func (l *Ledger[F]) String() string {
	in := ""
	if l.c.Form.Schema != "" && l.c.Address.Database != "" {
		in = " in " + l.c.Address.Database
	}
	return fmt.Sprintf("%s %s%s at %s", l.c.Form.Store, l.c.Name(), in, l.c.Place())
}

// Init creates the tables unless they exist, and checks that they are fit for a ledger. It changes nothing that
// exists. It needs the right to create for what is missing alone. The roster is created unless that is denied:
// nothing else depends on it.
func (l *Ledger[F]) Init(ctx context.Context) error {
	if err := l.mayWrite("init"); err != nil {
		return err
	}
	_, err := storekit.RunUnchecked(ctx, l.c.Runner, "init", "", func(ctx context.Context) (none struct{}, err error) {
		f, err := l.c.parts.Look(ctx)
		if err != nil {
			return none, err
		}
		if f.Shared().Ledger == nil {
			err = l.c.parts.Create(ctx, f, l.c.Address.Table)
		}
		if err == nil && f.Shared().Roster == nil {
			if err = l.c.parts.Create(ctx, f, l.c.Address.Table+RosterSuffix); err != nil && l.c.denied(err) {
				err = nil
			}
		}
		if err == nil {
			err = l.c.Fitness.Check(ctx)
		}
		return none, err
	})
	return err
}

// denied reports whether an error says that a right is missing.
func (c *Core[F]) denied(err error) bool { return errors.Is(c.parts.Meaning(err).Is, store.ErrDenied) }

// InitScript returns the statements of Init for the store's own tool, and the rights of a worker: for the URI's user, if it has
// one.
func (l *Ledger[F]) InitScript() string { return l.c.parts.Script() }

// CheckRights returns store.ErrDenied if the user may not insert, and nil if it may. Any other error leaves it open. It stores
// nothing.
func (l *Ledger[F]) CheckRights(ctx context.Context) error {
	if err := l.mayWrite("check rights"); err != nil {
		return err
	}
	_, err := storekit.RunUnchecked(ctx, l.c.Runner, "check rights", "", func(ctx context.Context) (none struct{}, err error) {
		var unknown F
		lacks, err := l.c.parts.Lacks(ctx, unknown, l.c.Address.Table, "SELECT", "INSERT")
		if err == nil && lacks != "" {
			err = fmt.Errorf("%w: the user %s lacks %s", store.ErrDenied, cmp.Or(l.c.Address.User, "of the application's pool"), lacks)
		}
		if _, connects := errors.AsType[storekit.ConnectError](err); err != nil && !connects && (errors.Is(err, store.ErrDenied) || l.c.denied(err)) {
			err = storekit.Final(err) // A login may be denied for a moment, and not a right.
		}
		return none, err
	})
	return err
}

// Describe says what the ledger knows of its store. See [store.Described].
func (l *Ledger[F]) Describe() store.Description {
	return store.Description{
		Durability: l.Durability, Warning: l.Warning, InitScript: l.InitScript, CheckRights: l.CheckRights, Examine: l.Examine,
	}
}

// Warning says what could lose acknowledged records, or give two workers one slot, although the server is used, as of the last
// check, which is made at the first use and again every 10 min; it is empty if there is nothing. It asks nobody.
func (l *Ledger[F]) Warning() string {
	var none F
	f := l.c.Known()
	if f == none {
		return ""
	}
	var all []string
	for _, flaw := range l.c.flaws(f, false) {
		all = append(all, flaw.Error())
	}
	return strings.Join(all, "; ")
}

// Durability is what survives, as of the last check.
func (l *Ledger[F]) Durability() store.Durability {
	const unknown = "Not known before the first use of the server."
	d := store.Durability{Crash: unknown, Power: unknown, Failover: unknown}
	var none F
	if f := l.c.Known(); f != none {
		d = l.c.parts.Durability(f)
	}
	untested := l.c.parts.Untested
	return store.Durability{Crash: d.Crash + untested, Power: d.Power + untested, Failover: d.Failover + untested}
}

// Close ends the operations in progress, and closes the connections. Those of the application's pool are given back.
func (l *Ledger[F]) Close(ctx context.Context) error {
	return l.c.Runner.Close(ctx, func() error {
		err := l.c.DB.Close()
		if l.c.parts.Close != nil {
			err = errors.Join(err, l.c.parts.Close())
		}
		l.c.Lines.close()
		return err
	})
}
