package storetest

import (
	"testing"

	"github.com/slotlease/slotlease/store"
)

// Harness connects the suite to one store. Each call of the function given to Run
// makes a harness on empty data.
type Harness struct {
	// Open returns another independent handle (with its own connection) on the
	// harness's data. The suite closes it.
	Open func(t testing.TB) store.Ledger
	// InitFirst makes what the store needs, as an administrator does, before the first Open. It is for
	// handles that have no right to; their Init must find nothing to do then. Nil if the suite is to
	// call the Init of a handle.
	InitFirst func(t testing.TB)
	// Plant writes a raw document at the key (workerType, seq), bypassing the
	// store's encoder and checks, into data that is initialised. fields has the stored field names (camelCase) and
	// JSON-like values (string, int64, float64, bool, nil, time.Time,
	// map[string]any); see Document. Plant adds the fields of the key unless fields has them. If
	// the store can't express a value at all (a column of another type), Plant calls
	// t.Skip, as Skips announces.
	Plant func(t testing.TB, workerType string, seq int64, fields map[string]any)
	// OpenReading returns a handle on the harness's data, which is initialised, that has no right
	// to write: by a file that it may only read, a role, a key, or a server that refuses. The
	// suite closes it. It is nil for a store that knows no such handles.
	OpenReading func(t testing.TB) store.Ledger
	// PlantUnique gives the store's table or collection a unique index, of the name
	// "planted_unique", over the field workerType. It holds one record by then. Nil if the
	// store has no such indexes.
	PlantUnique func(t testing.TB)
	// PlantTrigger makes the store drop each new record silently, by a trigger of the name
	// "planted_trigger". Nil if the store has no triggers.
	PlantTrigger func(t testing.TB)
	// OpenElsewhere returns a handle that reaches the harness's data, which is in use, by another
	// path: a link, a second mount, another address. Or it returns the error of a store that
	// refuses that, which wraps ErrRefused. Nil if the data has one path. The suite closes the handle.
	OpenElsewhere func(t testing.TB) (store.Ledger, error)
	// PlantPresence writes a raw document at the key (workerType, id) of the roster, in place of one
	// that is there, as Plant does in the ledger. The value of labels is a map, in whatever
	// form the store keeps it. Nil if the store keeps no roster, or can't hold what it can't read.
	PlantPresence func(t testing.TB, workerType, id string, fields map[string]any)
	// MaxDocument is the largest document in bytes that the store holds, if it has a limit that the
	// suite must know: it plants texts of up to 1 MiB. At least 256 KiB; 0 means no limit.
	MaxDocument int
	// Skips announces what is skipped, and says why: the key names a group, a case as "group/case", or a
	// part as "group/case/part", in which * stands for any text. Any other skip, by the suite or by a Plant, is a
	// failure, so that none goes unnoticed.
	Skips map[string]string
	// FreeStamp says that Tail gives a stamp.
	FreeStamp bool
	// Rounds of the append race; 0 means 1,000. SLOTLEASE_RACE_ROUNDS, if it is set in
	// the environment, is used instead.
	Rounds int
}
