package history

import (
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Head is the record that workers go by: the one that an operator names to override what is
// in force (operate.OverrideOptions.Seq).
type Head struct {
	// Record is the zero Record if there is none.
	Record store.Record
	// Stuck says that workers can't obey Record, and never supersede it: no record below it
	// shows what is in force, and the first of the ledger has been trimmed.
	Stuck bool
	// Watched is how long workers watch Record before they supersede it, if they have slots as long
	// as that of the newest record that they obey; 0 if they obey Record.
	Watched time.Duration
}

// FindHead finds the record that workers go by at a store time, in what
// [store.Ledger.Tail] returned of a limit, newest first: not always the newest, since
// records above a free key are passed over. It reports false if more have to be read to
// know it, as where all are [Poison].
func FindHead(records []store.Record, limit int, now time.Time) (Head, bool) {
	below, enough := machine.LookBelow(records, limit, exactly(now))
	return Head{Record: below.Head, Stuck: below.Stuck, Watched: below.Watched}, enough
}
