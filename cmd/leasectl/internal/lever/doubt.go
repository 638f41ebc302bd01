package lever

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// doubt says what is odd about an order that was given: a name that nobody is known to have, which may be
// mistyped, or an end of what wasn't in force. It is for information: what can't be read raises none.
func doubt(ctx context.Context, l store.Ledger, r store.Record) string {
	roster, ok := store.As[store.Roster](l)
	if !ok {
		return ""
	}
	crew, err := roster.Presences(ctx, r.WorkerType)
	if err != nil {
		return ""
	}
	o, _ := r.Order()
	switch {
	case slices.ContainsFunc(r.OrdersAt(o.At), left):
		return r.WorkerType + " was moved to another store: nobody obeys the order here, give it there"
	case o.Removes():
		return doubtOfEnd(ctx, l, r, o)
	case r.Schedule == "" && len(crew) == 0: // Up to now it had orders alone, if anything.
		text := fmt.Sprintf("no worker of %s is known: it had no slot yet, and the roster has nobody of it", r.WorkerType)
		if others := inspect.Beside(ctx, l, r.WorkerType); others != "" {
			text += "; there are also " + others
		}
		return text
	case o.Kind == store.OrderTrigger:
		return doubtOfRun(r, o, crew)
	case o.Kind == store.OrderPrefer:
		return doubtOfTarget(ctx, l, r, o, crew)
	case o.Kind == store.OrderDrain && !slices.ContainsFunc(crew, func(p store.Presence) bool { return p.Host == o.Target }):
		return fmt.Sprintf("the roster has no worker of %s on host %s: host names must match to the letter, see leasectl inspect workers", r.WorkerType, o.Target)
	}
	return ""
}

// left reports that an order is the pause of a worker type that was moved to another store.
func left(o store.Order) bool {
	role, _ := o.Move()
	return role == store.MoveLeft
}

// doubtOfRun finds that nobody is there who runs a job for a trigger.
func doubtOfRun(r store.Record, o store.Order, crew []store.Presence) string {
	if slices.ContainsFunc(crew, func(p store.Presence) bool { return workerlease.IsPresent(p, o.At) }) {
		return ""
	}
	return fmt.Sprintf("no worker of %s is there, by the roster: unless one comes before %s, nobody runs it", r.WorkerType, store.Format(o.Until))
}

// doubtOfEnd finds that what was to end wasn't in force.
func doubtOfEnd(ctx context.Context, l store.Ledger, r store.Record, o store.Order) string {
	none := fmt.Sprintf("no %s was in force: nothing has changed", o.Kind)
	if o.Target != "" {
		none = fmt.Sprintf("no %s of %s was in force: nothing has changed", o.Kind, o.Target)
	}
	if r.Seq == 1 {
		return none
	}
	below, err := l.Get(ctx, r.WorkerType, r.Seq-1)
	if orders := below.OrdersAt(o.At); err == nil && len(orders) > 0 {
		var others []string
		for _, other := range orders {
			others = append(others, other.String())
		}
		none += "; in force are: " + strings.Join(others, "; ")
	}
	if err != nil || slices.ContainsFunc(below.OrdersAt(o.At), func(b store.Order) bool { return b.Kind == o.Kind && (o.Target == "" || o.Target == b.Target) }) {
		return ""
	}
	return none
}

// doubtOfTarget finds that who is preferred isn't known, or isn't there.
func doubtOfTarget(ctx context.Context, l store.Ledger, r store.Record, o store.Order, crew []store.Presence) string {
	const newest = 40 // Workers that aren't in the roster are known by what they had.
	records, _, err := l.Tail(ctx, r.WorkerType, newest)
	if err != nil {
		return ""
	}
	listed, there := false, false
	for _, p := range crew {
		listed = listed || p.InstanceID == o.Target
		there = there || p.InstanceID == o.Target && workerlease.IsPresent(p, o.At)
	}
	had := func(r store.Record) bool { return r.Kind == store.KindGrant && r.InstanceID == o.Target }
	switch {
	case listed && !there:
		return fmt.Sprintf("%s isn't there, by the roster: until it is, others have the slots", o.Target)
	case !listed && !slices.ContainsFunc(records, had):
		return fmt.Sprintf("no worker %s of %s is known, neither by the roster nor by the newest records: until there is one, others have the slots", o.Target, r.WorkerType)
	}
	return ""
}
