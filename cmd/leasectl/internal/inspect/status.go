package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Status shows all worker types of a ledger, or one, a row each. With Watch it returns when the context ends.
func Status(ctx context.Context, t storeuri.Target, o Options, s Screen) error {
	return open(ctx, t, o, func(l store.Ledger) error { return showStatus(ctx, t, l, o, s) })
}

// showStatus shows the worker types of a ledger.
func showStatus(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, s Screen) error {
	ledger := &charges.Ledger{Ledger: l}
	look := func() (overview, error) {
		limited, cancel := context.WithTimeout(ctx, o.Timeout)
		defer cancel()
		found := overview{store: t.Shown, width: s.Width}
		err := found.take(limited, ledger, o.WorkerType)
		found.warning, found.charges = storeuri.Warning(l), ledger.Charges()
		return found, advice.ForStore(t, err)
	}
	return glance(ctx, o, s, look)
}

// overview are the worker types of a ledger at a moment.
type overview struct {
	at      time.Time
	store   string
	types   []typeStatus
	invalid []string // names that no worker type can have
	roster  bool     // it was read
	charges workerlease.Charges
	warning string
	width   int // of the terminal; 0 if it isn't known
}

// typeStatus is what matters of a worker type.
type typeStatus struct {
	workerType string
	schedule   string
	holder     history.Entry // whose lease is in force; its State is empty if there is none
	since      time.Time     // when its holder began, by the records that were read
	last       history.Entry // the newest that is over; its State is empty if there is none
	next       slots.Slot    // the slot that begins next; zero if the schedule can't be read
	claimedBy  string        // who has claimed that
	present    int           // workers that are there, by the roster
	gone       int           // that should be there
	orders     []store.Order // of operators, in force
	note       string
	warnings   []string
}

func (s overview) warns() string { return s.warning }

// statusRecords is how many records are read of each type.
const statusRecords = 40

// take reads a ledger.
func (s *overview) take(ctx context.Context, l *charges.Ledger, workerType string) error {
	stamp, err := l.Now(ctx)
	if err != nil {
		return err
	}
	s.at = stamp.Time
	names := []string{workerType}
	if workerType == "" {
		types, err := TypesIn(ctx, l)
		if err != nil {
			return err
		}
		names, s.invalid = types.Valid, types.Invalid
	}
	crews, err := s.crews(ctx, l, workerType)
	if err != nil {
		return err
	}
	for name, crew := range crews {
		waits := slices.ContainsFunc(crew, func(p store.Presence) bool { return workerlease.IsPresent(p, s.at) })
		if waits && !slices.Contains(names, name) {
			names = append(names, name) // It has no slot yet.
		}
	}
	slices.Sort(names)
	twins := twins(names)
	for _, name := range names {
		records, _, err := l.Tail(ctx, name, statusRecords)
		if err != nil {
			return err
		}
		if len(records) == 0 && workerType != "" && len(crews[name]) == 0 {
			if err := CheckType(ctx, l, name); err != nil {
				return err
			}
		}
		one := statusOf(name, records, s.at)
		if one.schedule == "" {
			one.plan(scheduleIn(crews[name]), s.at) // Orders may have come before the first slot.
		}
		if len(records) == 0 {
			one.note = "no slot yet"
		}
		one.take(crews[name], s.roster, s.at)
		if other := twins[name]; other != "" {
			one.warn("differs from %s by its case only", other)
		}
		s.types = append(s.types, one)
	}
	return nil
}

// crews are the workers of the roster by type, if the ledger keeps one.
func (s *overview) crews(ctx context.Context, l *charges.Ledger, workerType string) (map[string][]store.Presence, error) {
	all, err := l.Presences(ctx, workerType)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, store.ErrDenied) {
		return nil, nil // It is for information.
	}
	s.roster = len(all) > 0
	crews := map[string][]store.Presence{}
	for _, p := range all {
		crews[p.WorkerType] = append(crews[p.WorkerType], p)
	}
	return crews, err
}

// statusOf is what the newest records of a type say at a time.
func statusOf(workerType string, records []store.Record, now time.Time) typeStatus {
	s := typeStatus{workerType: workerType}
	rows := history.Read(records, now, nil)
	for i := len(rows) - 1; i >= 0; i-- {
		e := rows[i]
		if e.State == history.Failed && e.InForce(now) {
			s.holder, s.since, s.note = e, e.Window.Start, e.Note()
			continue
		}
		switch e.State {
		case history.Held:
			s.holder, s.since = e, e.Window.Start
		case history.Upcoming:
			s.claimedBy = holderOf(e)
		case history.Free, history.Poison:
		case history.Expired, history.Released, history.Overridden, history.Missed, history.Done, history.Failed:
			switch {
			case s.holder.State != "" && e.Record.Token == s.holder.Record.Token && e.Record.Token != 0:
				s.since = e.Window.Start // Its lease goes on over several slots.
			case s.last.State == "":
				s.last = e
			}
		}
		if s.schedule == "" && e.Record.Schedule != "" {
			s.schedule = e.Record.Schedule
		}
	}
	s.plan(s.schedule, now)
	if n := len(rows); n > 0 {
		s.orders = slices.DeleteFunc(OrdersIn(records, now), s.isSpent)
		s.note = s.condition(rows, records[0])
	}
	return s
}

// condition is what of the newest records matters most, in words. The note of a holder stays.
func (t typeStatus) condition(rows []history.Entry, head store.Record) string {
	newest, notes := rows[len(rows)-1], []string{}
	switch {
	case len(t.orders) > 0:
		notes = append(notes, orderNote(t.orders))
	case t.note != "":
		notes = append(notes, t.note)
	case t.holder.State == "" && newest.State == history.Free:
		notes = append(notes, "nobody has the slot")
	case t.schedule == "" && newest.Record.Kind == store.KindOrder:
		notes = append(notes, "no slot yet")
	}
	if text := obstacle(rows, head); text != "" {
		notes = append(notes, text)
	}
	return strings.Join(notes, "; ")
}

// obstacle is what of the newest records keeps workers from claiming; empty if nothing does.
func obstacle(rows []history.Entry, head store.Record) string {
	poisoned := func(e history.Entry) bool { return e.State == history.Poison && e.Record.Seq == head.Seq }
	switch newest := rows[len(rows)-1]; {
	case slices.ContainsFunc(rows, poisoned):
		return fmt.Sprintf("record %d can't be obeyed: leasectl doctor says what to do", head.Seq)
	case !newest.BlocksUntil.IsZero():
		return "nothing can be claimed until " + store.Format(newest.BlocksUntil) + ": leasectl doctor says what to do"
	}
	return ""
}

// plan takes a schedule, and the slot that comes next by it.
func (t *typeStatus) plan(text string, now time.Time) {
	t.schedule = text
	if schedule, err := slots.Parse(text); err == nil {
		t.next = schedule.Next(now)
	}
}

// scheduleIn is the schedule that the first worker of a roster says it has.
func scheduleIn(crew []store.Presence) string {
	for _, p := range crew {
		if p.Schedule != "" {
			return p.Schedule
		}
	}
	return ""
}

// OrdersIn are the orders of operators in force, by the newest record that can be obeyed.
func OrdersIn(records []store.Record, now time.Time) []store.Order {
	for _, r := range records {
		if r.CheckEnvelope() == nil {
			return r.OrdersAt(now)
		}
	}
	return nil
}

// isSpent reports that an order asks for the release of a lease that is over.
func (t typeStatus) isSpent(o store.Order) bool {
	return o.Kind == store.OrderRelease && (t.holder.State == "" || o.Target != t.holder.Record.Claim)
}

// orderNote says which orders are in force.
func orderNote(orders []store.Order) string {
	var words []string
	for _, o := range orders {
		words = append(words, o.String())
	}
	return strings.Join(words, "; ")
}

// holderOf names who has a slot.
func holderOf(e history.Entry) string {
	if e.Record.Group != "" {
		return e.Record.Group
	}
	return e.Record.InstanceID
}

// matters is what of the types is printed again if it changes.
func (s overview) matters() string {
	var b strings.Builder
	for _, t := range s.types {
		fmt.Fprintln(&b, t.workerType, holderOf(t.holder), t.holder.Record.Token, t.last.State, t.last.Slot.Start, t.present, t.gone, t.notes())
	}
	return b.String()
}
