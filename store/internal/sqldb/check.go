package sqldb

import (
	"context"
	"fmt"
	"slices"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Check is a row of a store's table of checks.
type Check[F Facts] struct {
	// Name is that of store.Finding.Check.
	Name string
	// Refuses says that no operation is begun because of its flaws. Those of others are warned of.
	Refuses bool
	// Flaws finds out what is wrong: each has the cause and the remedy. Aside has more of them, which Examine alone says. Those
	// of another name are another check's.
	Flaws, Aside func(f F) []storekit.Flaw
	// Sound is what was found if nothing is wrong, in a few words, or a storekit.Skip. nil: the check has no finding of its own.
	Sound func(f F) (string, error)
	// Ask finds out without a server, in place of all that.
	Ask func() (string, error)
}

// Says is a Sound that says the same of each server.
func Says[F Facts](text string) func(f F) (string, error) {
	return func(F) (string, error) { return text, nil }
}

// Flaws collects what is wrong.
type Flaws struct {
	// Check is that of Add, and each text begins with Of.
	Check, Of string
	All       []storekit.Flaw
}

// Add adds a flaw.
func (f *Flaws) Add(remedy, format string, args ...any) { f.AddTo(f.Check, remedy, format, args...) }

// AddTo adds one of another check.
func (f *Flaws) AddTo(check, remedy, format string, args ...any) {
	f.All = append(f.All, storekit.Flaw{Check: check, Remedy: remedy, What: f.Of + fmt.Sprintf(format, args...)})
}

// CheckServer is the name of the check of the server, and CheckTable that of the table.
const (
	CheckServer = "server"
	CheckTable  = "table"
	// CheckDurability is that of what survives.
	CheckDurability = "durability"
)

// CheckDurability is the check of what survives.
func (c *Core[F]) CheckDurability(flaws, aside func(f F) []storekit.Flaw) Check[F] {
	return Check[F]{Name: CheckDurability, Flaws: flaws, Aside: aside, Sound: func(f F) (string, error) {
		d := c.parts.Durability(f)
		return fmt.Sprintf("crash: %s Power: %s Failover: %s", d.Crash, d.Power, d.Failover), nil
	}}
}

// checks is the whole table.
func (c *Core[F]) checks() []Check[F] {
	split := Check[F]{Name: CheckServer, Refuses: true, Flaws: c.splitFlaws}
	clocks := Check[F]{Name: store.CheckServerClocks, Flaws: c.clockFlaws, Sound: c.soundClocks}
	tables := []Check[F]{
		// TableFlaws has those of the constraints, too.
		{Name: CheckTable, Refuses: true, Flaws: c.TableFlaws, Sound: Says[F](c.parts.Kept)},
		{Name: store.CheckConstraints, Sound: Says[F]("nothing but the key keeps records out" + c.parts.Hooks)},
		{Name: store.CheckExpiry, Sound: Says[F]("a table has no expiry; what jobs and other programs delete isn't known")},
	}
	return slices.Concat([]Check[F]{split}, c.parts.Checks, []Check[F]{clocks}, tables)
}

// flaws are those that refuse, or those that are warned of.
func (c *Core[F]) flaws(f F, refuse bool) (all []storekit.Flaw) {
	for _, check := range c.checks() {
		if check.Refuses == refuse && check.Flaws != nil {
			all = append(all, check.Flaws(f)...)
		}
	}
	return all
}

// check says why the database can't keep a ledger, or nil.
func (c *Core[F]) check(ctx context.Context) error {
	f, err := c.Survey(ctx)
	if err == nil {
		return c.Judge(ctx, f)
	}
	if flaw, is := c.parts.Unusable(err); is && c.known.Load() == nil {
		return flaw.Refuse()
	}
	return err
}

// Judge takes in facts, and says why the database can't keep a ledger, or nil.
func (c *Core[F]) Judge(ctx context.Context, f F) error {
	if flaws := c.flaws(f, true); len(flaws) > 0 {
		return flaws[0].Refuse()
	}
	if f.Shared().Ledger == nil {
		return c.Absent(ctx)
	}
	c.Learn(f)
	return nil
}
