package fault

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/store"
)

// OfMistake is what to do about a statement that a server can't parse, or that names what isn't there.
const OfMistake = "compare the tables with those of leasectl init --print; if they are alike, it is a mistake of slotlease: report it with this line and the server's version"

// Flaw is what makes a store unfit for a ledger, or less fit: as an error it says what is wrong and what to
// do, and for an examination it has the two apart.
type Flaw struct {
	// Check is the check of store.Finding that finds it.
	Check        string
	What, Remedy string
	// Level is that of its finding, whatever that of the check is; empty: that of the check.
	Level store.Level
}

// Error is both, in a line.
func (f Flaw) Error() string {
	if f.Remedy == "" {
		return f.What
	}
	return f.What + ": " + f.Remedy
}

// Refuse is the error of a store that isn't used because of a flaw.
func (f Flaw) Refuse() error { return fmt.Errorf("%w: %w", store.ErrRefused, f) }

// Finding is what an examination says of it.
func (f Flaw) Finding(level store.Level) store.Finding {
	return store.Finding{Check: f.Check, Level: cmp.Or(f.Level, level), Text: f.What, Remedy: f.Remedy}
}

// Failed is the finding of a check that ended with an error, which may be a Flaw.
func Failed(check string, level store.Level, err error) store.Finding {
	if f, ok := errors.AsType[Flaw](err); ok {
		found := f.Finding(level)
		found.Check, found.Err = check, err
		return found
	}
	return store.Finding{Check: check, Level: level, Text: OneLine(err.Error()), Err: err}
}
