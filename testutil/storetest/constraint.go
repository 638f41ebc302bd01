package storetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// constraintCases are about constraints that others give to a store's table or collection. A
// worker would lose each slot by one, or hold slots that aren't recorded, and nothing would
// show why.
var constraintCases = []testCase{
	constrained("a foreign unique index is no conflict: an append by an open handle names it", "planted_unique", (*bench).wantNamed),
	constrained("a foreign unique index is refused by the first append of a handle", "planted_unique", (*bench).wantRefused),
	constrained("a trigger that drops records is an error of an append by an open handle, which names it", "planted_trigger", (*bench).wantNamed),
	constrained("a trigger that drops records is refused by the first append of a handle", "planted_trigger", (*bench).wantRefused),
}

// constrained is a case with a constraint, planted below the handles that the bench has and one
// more, which is unused.
func constrained(name, constraint string, test func(b *bench, t *testing.T, unused store.Ledger, constraint string)) testCase {
	return testCase{name, func(t *testing.T, b *bench) {
		plant := map[string]func(testing.TB){"planted_unique": b.PlantUnique, "planted_trigger": b.PlantTrigger}[constraint]
		if plant == nil {
			t.Skip("the harness plants no such constraint")
		}
		add(t, b, Grant("job", 1))
		unused := b.handle(t)
		plant(t)
		test(b, t, unused, constraint)
		absent(t, b, "job", 2)
		wantSeqs(t, "Tail(job)", tail(t, b, "job", 9), 1)
	}}
}

// wantNamed demands that an append by a handle which has been in use fails, and that the error
// names what made it fail.
func (b *bench) wantNamed(t *testing.T, _ store.Ledger, constraint string) {
	t.Helper()
	err := b.Append(within(t), Grant("job", 2))
	if err == nil || errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), constraint) {
		t.Errorf("Append of a free key = %v, want an error that is no conflict and names %s", err, constraint)
	}
}

// wantRefused demands that a handle which was unused is refused.
func (b *bench) wantRefused(t *testing.T, unused store.Ledger, constraint string) {
	t.Helper()
	err := unused.Append(within(t), Grant("job", 2))
	if !errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), constraint) {
		t.Errorf("first Append = %v, want ErrRefused, and %s named", err, constraint)
	}
}
