package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
)

// copied says of a snapshot that it was taken of one server's copy; the zero value that it
// wasn't.
type copied struct {
	server string // with its role
	asOf   time.Time
}

// openCopy opens the copy of one server that answers, if the store has copies.
func openCopy(ctx context.Context, t storeuri.Target, l store.Ledger) (store.Copy, error) {
	open := store.Describe(l).OpenCopy
	if open == nil {
		return nil, exit.BadUsage("", fmt.Errorf("--stale: the store of %s has no secondaries", t.Scheme))
	}
	return open(ctx)
}

// copyOf asks what a ledger is a copy of, if it is one. What is read later is no older.
func copyOf(ctx context.Context, l store.Ledger) (of copied, err error) {
	if c, ok := l.(store.Copy); ok {
		of.server, of.asOf, err = c.AsOf(ctx)
	}
	return of, err
}

// age is how old a copy is at a time. The clocks of servers differ a little.
func (c copied) age(at time.Time) time.Duration {
	return max(at.Sub(c.asOf), 0).Round(time.Millisecond)
}

// line is what a person should know of a copy.
func (c copied) line(at time.Time) string {
	return fmt.Sprintf("a copy, %v old: %s, has all up to %s; later records may be missing", c.age(at), display.Flat(c.server), store.Format(c.asOf))
}

// Copy is the JSON form of what a copy is. Its names don't change.
type Copy struct {
	Server string `json:"server"`
	AsOf   string `json:"asOf"`
	AgeMs  int64  `json:"ageMs"`
}

func (c copied) json(at time.Time) *Copy {
	if c.server == "" {
		return nil
	}
	return &Copy{Server: c.server, AsOf: jsonTime(c.asOf), AgeMs: c.age(at).Milliseconds()}
}
