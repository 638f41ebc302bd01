//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/audit"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

func TestTheArchiveHasWhatItTookOut(t *testing.T) {
	l := memory.New(memory.Options{})
	a := &archive{}
	const n = 200
	for i := range int64(n) {
		if err := l.Append(t.Context(), grant(i+1, i+1, "alpha-0")); err != nil {
			t.Fatal(err)
		}
		if i%20 == 0 {
			a.shorten(t.Context(), l.Handle(), second.name)
		}
	}
	left, _, err := l.Tail(t.Context(), second.name, n)
	if most := int(rested/time.Second) + 25; err != nil || len(left) > most || len(left) < int(rested/time.Second) {
		t.Errorf("Tail() = %d records, %v, want those of the last %v, and at most %d", len(left), err, rested, most)
	}
	all := a.all(left)
	if len(all) != n || all[0].Seq != 1 || all[n-1].Seq != n || len(a.wrong) > 0 {
		t.Errorf("all() = %d records, want all %d; wrong: %q", len(all), n, a.wrong)
	}
	if wrong := audit.Ledger(all); len(wrong) > 0 {
		t.Errorf("audit.Ledger(all()) = %q", wrong)
	}

	other := all[3]
	other.Claim = "another"
	a.take([]store.Record{other})
	if len(a.wrong) != 1 || !strings.Contains(a.wrong[0], "record 4 was") {
		t.Errorf("a key that holds another record now: wrong = %q", a.wrong)
	}
}
