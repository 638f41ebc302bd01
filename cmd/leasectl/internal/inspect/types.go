package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// Types are the names under which a ledger has records.
type Types struct {
	// Valid are worker types, sorted. That of sightings is left out: it is no worker's.
	Valid []string
	// Invalid are names that no worker type can have, sorted: another program wrote them. They
	// may hold anything, and are shown as invalid or not at all, never used.
	Invalid []string
}

// WorkerTypes lists the worker types of a store, also those that only the roster knows.
func WorkerTypes(ctx context.Context, t storeuri.Target) (Types, error) {
	l, err := t.Open(ctx, true)
	if err != nil {
		return Types{}, err
	}
	defer func() { _ = storeuri.Close(ctx, l) }() // it was only read
	found, err := TypesIn(ctx, l)
	roster, _ := rosterOf(ctx, l, "")
	found.add(roster)
	return found, err
}

// add adds the worker types of a roster.
func (t *Types) add(roster []store.Presence) {
	for _, p := range roster {
		if store.CheckWorkerType(p.WorkerType) == nil && !slices.Contains(t.Valid, p.WorkerType) {
			t.Valid = append(t.Valid, p.WorkerType)
		}
	}
	slices.Sort(t.Valid)
}

// slottedIn are the worker types that have slots or, if none has, whose workers wait for their first one.
func slottedIn(ctx context.Context, l store.Ledger) (Types, error) {
	types, err := TypesIn(ctx, l)
	if err != nil || len(types.Valid) > 0 {
		return types, err
	}
	stamp, err := l.Now(ctx)
	roster, _ := rosterOf(ctx, l, "")
	types.add(slices.DeleteFunc(roster, func(p store.Presence) bool { return !workerlease.IsPresent(p, stamp.Time) }))
	return types, err
}

// rosterOf is the workers of a type in the roster, or of all types. It is for information: without one, there are none.
func rosterOf(ctx context.Context, l store.Ledger, workerType string) ([]store.Presence, error) {
	roster, ok := l.(interface {
		Presences(ctx context.Context, workerType string) ([]store.Presence, error)
	})
	if !ok {
		return nil, nil
	}
	return roster.Presences(ctx, workerType)
}

// WithoutRoster reports that a roster is none, or can't be read as it is: it is for information, and a look does without.
func WithoutRoster(err error) bool {
	return slices.ContainsFunc([]error{errors.ErrUnsupported, store.ErrDenied, store.ErrMissing, store.ErrRefused}, func(is error) bool { return errors.Is(err, is) })
}

// Unlisted is the warning of a roster that the store refuses to read.
func Unlisted(err error) string { return "the workers can't be listed: " + err.Error() }

// TypesIn lists the worker types of a ledger.
func TypesIn(ctx context.Context, l store.Ledger) (found Types, err error) {
	names, err := l.WorkerTypes(ctx)
	for _, name := range names {
		switch {
		case store.CheckWorkerType(name) != nil:
			found.Invalid = append(found.Invalid, name)
		case name != store.Sightings:
			found.Valid = append(found.Valid, name)
		}
	}
	return found, err
}

// None reports that there are no names at all.
func (t Types) None() bool { return len(t.Valid)+len(t.Invalid) == 0 }

// String lists some names in a line, the invalid ones quoted.
func (t Types) String() string {
	valid := listed(t.Valid)
	if len(t.Invalid) == 0 {
		return valid
	}
	var quoted []string
	for _, name := range t.Invalid {
		const most = 64
		if len(name) > most {
			quoted = append(quoted, display.Quote(name[:most])+"…")
		} else {
			quoted = append(quoted, display.Quote(name))
		}
	}
	invalid := "invalid ones: " + listed(quoted)
	if valid == "" {
		return invalid
	}
	return valid + ", and " + invalid
}

// only is the worker type of a ledger that has just one, or "" if it has none.
func (t Types) only() (string, error) {
	if len(t.Valid) < 2 {
		return strings.Join(t.Valid, ""), nil
	}
	return "", exit.BadUsage("--worker-type "+t.Valid[0], fmt.Errorf("the ledger has %d worker types, name one with --worker-type: %s", len(t.Valid), t))
}

// CheckType is an error if a ledger has other worker types, but not this one: neither records of it, nor
// workers in the roster, which may wait for their first slot. A ledger without any is new.
func CheckType(ctx context.Context, l store.Ledger, name string) error {
	types, err := TypesIn(ctx, l)
	if err != nil || len(types.Valid) == 0 || slices.Contains(types.Valid, name) {
		return err
	}
	if crew, err := rosterOf(ctx, l, name); len(crew) > 0 || errors.Is(err, store.ErrRefused) {
		return nil // In a roster that can't be read it may be.
	}
	near := 0
	types.Valid, near = BySimilarity(types.Valid, name)
	if near > 0 {
		return exit.BadUsage("--worker-type "+types.Valid[0], fmt.Errorf("no such worker type %q: the ledger has %s", name, types))
	}
	return exit.BadUsage("", fmt.Errorf("no such worker type %q: the ledger has %s; a run --once that could begin nothing leaves no trace but its log", name, types))
}

// Beside names the other worker types of a ledger in a line, those that resemble one first; it is empty if there
// are none.
func Beside(ctx context.Context, l store.Ledger, name string) string {
	types, err := TypesIn(ctx, l)
	if err != nil {
		return ""
	}
	types.Valid, _ = BySimilarity(slices.DeleteFunc(types.Valid, func(other string) bool { return other == name }), name)
	return listed(types.Valid)
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

// BySimilarity sorts names: those that resemble another first, and the most similar of
// these before all. near is how many of them there are.
func BySimilarity(names []string, other string) (sorted []string, near int) {
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
