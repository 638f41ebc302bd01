package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
)

// WorkerTypes lists the worker types of a store, sorted.
func WorkerTypes(ctx context.Context, t storeuri.Target) ([]string, error) {
	l, err := t.Open(ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = storeuri.Close(ctx, l) }() // it was only read
	return TypesIn(ctx, l)
}

// TypesIn lists the worker types of a ledger, sorted, without that of sightings: it is no worker's.
func TypesIn(ctx context.Context, l store.Ledger) ([]string, error) {
	types, err := l.WorkerTypes(ctx)
	return slices.DeleteFunc(types, func(t string) bool { return t == store.Sightings }), err
}

// onlyType is the worker type of a ledger that has just one, or "" if it has none.
func onlyType(ctx context.Context, l store.Ledger) (string, error) {
	types, err := TypesIn(ctx, l)
	if err != nil {
		return "", err
	}
	if len(types) < 2 {
		return strings.Join(types, ""), nil
	}
	return "", exit.BadUsage("--worker-type "+types[0], fmt.Errorf("the ledger has %d worker types, name one with --worker-type: %s", len(types), listed(types)))
}

// CheckType is an error if a ledger has other worker types, but not this one. A ledger
// without any is new.
func CheckType(ctx context.Context, l store.Ledger, name string) error {
	types, err := TypesIn(ctx, l)
	if err != nil || len(types) == 0 || slices.Contains(types, name) {
		return err
	}
	types, near := bySimilarity(types, name)
	try := ""
	if near > 0 {
		try = "--worker-type " + types[0]
	}
	return exit.BadUsage(try, fmt.Errorf("no such worker type %q: the ledger has %s", name, listed(types)))
}

// listed are some names in a line.
func listed(names []string) string {
	const most = 20
	list := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		list += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return list
}

// bySimilarity sorts names: those that resemble another first, and the most similar of
// these before all. near is how many of them there are.
func bySimilarity(names []string, other string) (sorted []string, near int) {
	distance := func(name string) int {
		d := edits(strings.ToLower(name), strings.ToLower(other))
		if d > max(1, len(other)/3) {
			return len(other) + 1
		}
		near++
		return d
	}
	distances := map[string]int{}
	for _, name := range names {
		distances[name] = distance(name)
	}
	sorted = slices.Sorted(slices.Values(names))
	slices.SortStableFunc(sorted, func(a, b string) int { return distances[a] - distances[b] })
	return sorted, near
}

// edits is how many bytes have to be inserted, deleted or replaced to make b of a.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
