package inspect

import (
	"context"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
)

// Instances lists the names of the workers in the roster of a store, of a worker type or of all, sorted: those
// that a shell can complete, which may obey what else it is given.
func Instances(ctx context.Context, t storeuri.Target, workerType string) (names []string, err error) {
	l, err := t.Open(ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = storeuri.Close(ctx, l) }() // it was only read
	r, ok := l.(store.Roster)
	if !ok {
		return nil, nil
	}
	presences, err := r.Presences(ctx, workerType)
	for _, p := range presences {
		if strings.Trim(p.InstanceID, completable) == "" {
			names = append(names, p.InstanceID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// completable are characters that mean nothing to any shell.
const completable = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@+./-"
