package lever

import (
	"errors"
	"slices"
	"testing"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// partial is a ledger whose newest list of all presences may lack some.
type partial struct {
	*memory.Ledger
	lacks error
}

func (p partial) Unlisted() error { return p.lacks }

// A host is drained of all worker types, or of none: those that can't be listed may have workers there, too.
func TestAHostIsNotDrainedByAListThatLacksTypes(t *testing.T) {
	t.Parallel()
	m := memory.New(memory.Options{})
	for _, name := range []string{"export", "mail"} {
		p := store.Presence{
			WorkerType: name, ID: "w", InstanceID: "w", Host: "h1", Schedule: "every 5m", Phase: store.PhaseCandidate,
			Since: recordtest.Minutes(0), Seen: recordtest.Minutes(1), Next: recordtest.Minutes(5),
		}
		if err := m.Attend(t.Context(), []store.Presence{p}); err != nil {
			t.Fatal(err)
		}
	}
	spoiled := errors.New("{slotlease}:roster:report is no hash")
	for _, lacks := range []error{nil, spoiled} {
		types, err := typesOn(t.Context(), partial{m, lacks}, "h1")
		if !errors.Is(err, lacks) || !slices.Equal(types, []string{"export", "mail"}) {
			t.Errorf("typesOn() where the list lacks %v = %q, %v, want both types and that error", lacks, types, err)
		}
	}
}
