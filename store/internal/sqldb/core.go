package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Since makes the name of a server that of its process, which no other ever has.
const Since = " since "

// Facts are what a server said of itself, its database and the tables, at one moment.
type Facts interface {
	comparable
	Shared() *Common
}

// Common are the facts that all stores have.
type Common struct {
	// User is the account by which the server knows the user.
	User string
	// Server names the process in stamps, and Process does by whatever address it was reached. Default: Server.
	Server, Process string
	// Hosts are all that the URI names, if there are several, and Clocks those of the others.
	Hosts  []storekit.Host
	Clocks storekit.Clocks
	// Ledger and Roster are nil if the user knows of no such table.
	Ledger, Roster *Relation
}

// Shared are the facts that all stores have.
func (c *Common) Shared() *Common { return c }

// Parts are what a store does in its own way.
type Parts[F Facts] struct {
	Dialect Dialect
	// Insert appends a record, whose document is given, right above prev unless that is nil. It returns store.ErrConflict if the key
	// exists, and the error of store.WentBack if prev isn't there.
	Insert   func(ctx context.Context, r store.Record, prev *store.Record, document string) error
	ReadOnly bool
	// Meaning is what an error of the driver means.
	Meaning func(err error) storekit.Meaning
	// Linger and Waits are those of storekit.RunnerOptions.
	Linger func() time.Duration
	Waits  func() string

	// Look asks the server in use, and AskHosts each that the URI names, of which it names several.
	Look     func(ctx context.Context) (F, error)
	AskHosts func(ctx context.Context, limit time.Duration) []storekit.Host
	// Writers gives hosts that share what they write one process. Optional.
	Writers func(hosts []storekit.Host) []storekit.Host
	// Unusable is what is wrong with a server that has answered, and that no operation can use.
	Unusable func(err error) (storekit.Flaw, bool)
	// NameIt is what to do about a server that takes no writes.
	NameIt string
	// Several reports whether another server may take writes, now or later, and Unasked why the clock of one isn't known.
	Several func(f F) bool
	Unasked func(f F) string
	// Stamp adds to a stamp what the store knows. Optional.
	Stamp func(s *store.Stamp)

	// Checks is the table of the store's checks, beside those of the tables and of the clocks, which all stores have.
	Checks []Check[F]
	// Columns are what the table of the records must have, and Table adds what is wrong with it besides. Kept says that it is fine.
	Columns []Column
	Table   func(f F, flaws *Flaws)
	Kept    string
	// Hooks says what can't be found out of what keeps records out, if that is so.
	Hooks string
	// Probe is a statement that reads nothing of the table of the records, for a catalog that hides tables. Empty: it hides none.
	Probe string
	// Lacks names the rights on a table that the user lacks; empty if it has all. Without f it asks the server.
	Lacks func(ctx context.Context, f F, table string, rights ...string) (string, error)
	// Grantee is who is to be granted them. Default: the user.
	Grantee string
	// Durability is what survives, when that is known, and Untested ends what is said of it.
	Durability func(f F) store.Durability
	Untested   string

	// Create makes a table, and Script are the statements that do it by hand.
	Create func(ctx context.Context, f F, table string) error
	Script func() string
	// Close closes what the store has opened besides. Optional.
	Close func() error
}

// Core is what a ledger in an SQL database has.
type Core[F Facts] struct {
	Form     *Form
	Address  *Address
	Clock    clock.Clock
	Secrets  storekit.Secrets
	Password *storekit.Current // nil if it doesn't change
	// Logins are those of a URI in a file; nil without.
	Logins  *storekit.Renewed[*Address]
	Lender  *Lender // nil if the connections are the ledger's own
	Lines   Lines
	DB      *sql.DB
	Fitness *storekit.Fitness
	Runner  *storekit.Runner

	parts Parts[F]
	idle  *Idle
	// known is what the newest check found, and used the process that the newest connection leads to; nil before the first.
	known atomic.Pointer[F]
	used  atomic.Pointer[string]
	// shared: other servers were seen, one of which may take the writes one day, connected at the moment or not.
	shared atomic.Bool
}

// Open checks options, and completes an address by them. It reports everything that is wrong at once, with what was found
// before. It asks nobody.
func Open[F Facts](f *Form, a *Address, o Options, faults ...error) (*Core[F], error) {
	faults = append(faults, a.complete(f, o)...)
	if err := errors.Join(faults...); err != nil {
		return nil, f.Failed(err)
	}
	c := &Core[F]{Form: f, Address: a, Clock: o.Clock}
	if c.Clock == nil {
		c.Clock = clock.New()
	}
	c.Password = storekit.NewCurrent("PasswordFunc", o.PasswordFunc, c.Clock)
	c.Hide()
	return c, nil
}

// Failed is the error of Open.
func (f *Form) Failed(err error) error { return fmt.Errorf("%s: open: %w", f.Store, err) }

// Hide keeps the password of the address out of errors.
func (c *Core[F]) Hide() {
	a := c.Address
	if a.Password != "" {
		c.Secrets.Hide(a.Password)
		c.Secrets.HideLogin(a.User+":"+a.Password, "")
	}
	c.Secrets.Publish(append([]string{a.Database, a.Schema, a.Table}, a.Hosts...)...)
}

// Start makes the ledger, whose connections are those of DB.
func (c *Core[F]) Start(p Parts[F]) *Ledger[F] {
	c.parts = p
	c.Fitness = storekit.NewFitness(c.Clock, c.check)
	c.Runner = storekit.NewRunner(storekit.RunnerOptions{
		Store: c.Form.Store, Secrets: c.Secrets, Meaning: p.Meaning, Fitness: c.Fitness, Linger: p.Linger, Waits: p.Waits,
	})
	return &Ledger[F]{c}
}

// Known is what the newest check found; zero before the first.
func (c *Core[F]) Known() (f F) {
	if known := c.known.Load(); known != nil {
		f = *known
	}
	return f
}

// Learn takes in what a check found.
func (c *Core[F]) Learn(f F) {
	var none F
	if f == none {
		c.known.Store(nil)
		return
	}
	c.see(f)
	c.known.Store(&f)
}

// see notes that there are other servers.
func (c *Core[F]) see(f F) {
	if c.parts.Several(f) {
		c.shared.Store(true)
	}
}

// Copied reports whether there are other servers, connected at the moment or not.
func (c *Core[F]) Copied() bool { return len(c.Address.Hosts) > 1 || c.shared.Load() }

// Assumed is how far the clock of a server that may take writes, now or later, is assumed to be from that of the one that
// answered.
func (c *Core[F]) Assumed() time.Duration {
	switch {
	case c.Address.Skew > 0:
		return c.Address.Skew
	case c.Copied():
		return DefaultSkew
	}
	return 0
}

// Skew is how far it may be: as is assumed, or as was measured, if that is surely more.
func (c *Core[F]) Skew() time.Duration {
	skew := c.Assumed()
	var none F
	if f := c.Known(); f != none {
		skew = max(skew, f.Shared().Clocks.Sure(skew).Most())
	}
	return min(skew, storekit.MostSkew)
}

// Stamped is a stamp with its skew. Its clock has a name if the server's process is known.
func (c *Core[F]) Stamped(s store.Stamp) store.Stamp {
	if s.IsZero() {
		return s
	}
	s.Skew, s.Clock = c.Skew(), ""
	if strings.Contains(s.Server, Since) {
		s.Clock = s.Server
	}
	if c.parts.Stamp != nil {
		c.parts.Stamp(&s)
	}
	return s
}

// Tell puts the time of an insert, in µs, on the caller's receipt, if the server has said it.
func (c *Core[F]) Tell(ctx context.Context, micros int64, server string) {
	if micros <= 0 {
		return
	}
	s := store.Stamp{Time: time.UnixMicro(micros).UTC(), Granularity: time.Microsecond, Server: cmp.Or(server, c.Place())}
	store.Tell(ctx, c.Stamped(s))
}

// Unfit is the meaning of a server that takes no writes, or isn't that of the session. As long as no other was seen, somebody has
// named the wrong one. Later it is a failover, which passes.
func (c *Core[F]) Unfit(why storekit.Unfit) storekit.Meaning {
	m := storekit.Meaning{NotStored: true, Text: why.Why}
	if c.known.Load() == nil {
		m.Is, m.Text = store.ErrRefused, why.Why+": "+c.parts.NameIt
	}
	return m
}

// NoDatabase is the meaning of an error about a database that isn't there.
func (c *Core[F]) NoDatabase() storekit.Meaning {
	return storekit.Meaning{
		Is: store.ErrMissing, Text: fmt.Sprintf("there is no database %q on the server: create it", c.Address.Database),
		Remedy: "create the database, or correct its name in the URI; Init creates tables only",
	}
}

// Missing is the error of a table that isn't there.
func (c *Core[F]) Missing() error {
	return fmt.Errorf("there is no table %s: %w", c.Name(), store.ErrMissing)
}

// Absent is the error of a table that the catalog doesn't show.
func (c *Core[F]) Absent(ctx context.Context) error {
	if c.parts.Probe == "" {
		return c.Missing()
	}
	_, err := c.DB.ExecContext(ctx, c.parts.Probe)
	switch {
	case err == nil:
		return errors.New("the catalog doesn't show the table")
	case errors.Is(c.parts.Meaning(err).Is, store.ErrMissing):
		return c.Missing()
	}
	return err
}

// Taken is the error of an insert whose key is taken, as the server said. A statement that finds the row makes sure: the key may be
// that of another table.
func (c *Core[F]) Taken(ctx context.Context, db Querier, said error, text string, args ...any) error {
	found := false
	err := Each(ctx, db, func(*sql.Rows) error { found = true; return nil }, text, args...)
	switch {
	case err != nil:
		return err
	case found:
		return store.ErrConflict
	}
	return fmt.Errorf("the server says that the key is taken, but there is no record: a trigger may write to another table, or the record be hidden or gone (%s)", said.Error())
}

// Name is that of the ledger's table, for people.
func (c *Core[F]) Name() string { return c.Address.Name(c.Address.Table) }

// Place is where the servers are, for people.
func (c *Core[F]) Place() string { return c.Address.Place(c.Form) }

// Worker is who is to be granted rights in a script, before it is quoted.
func (c *Core[F]) Worker() string { return cmp.Or(c.Address.User, "worker") }
