package inspect

import (
	"context"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// untouched is a ledger that nobody may write or create.
type untouched struct {
	store.Ledger
	t *testing.T
}

func (u untouched) denied(op string) error {
	u.t.Errorf("%s was called, want a ledger only read", op)
	return store.ErrDenied
}
func (u untouched) Init(context.Context) error                 { return u.denied("Init") }
func (u untouched) Append(context.Context, store.Record) error { return u.denied("Append") }
func (u untouched) Trim(context.Context, string, int64) (int, error) {
	return 0, u.denied("Trim")
}

func TestInspectOnlyReads(t *testing.T) {
	poison := store.Record{WorkerType: "export", Seq: 2, Defect: "not a record"}
	for name, records := range map[string][]store.Record{"slots": {recordtest.Grant(1, 0, "a")}, "poison": {recordtest.Grant(1, 0, "a"), poison}, "nothing": {}} {
		l := untouched{blockedBy(records...), t}
		for _, workerType := range []string{"", "export"} {
			for _, asJSON := range []bool{false, true} {
				if got, err := shown(t, l, Options{WorkerType: workerType, Last: 5, JSON: asJSON, Timeout: time.Minute}); err != nil || got == "" {
					t.Errorf("inspect slots of %s = %q, %v, want it shown", name, got, err)
				}
			}
		}
	}
}
