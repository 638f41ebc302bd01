package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Status shows all worker types of a ledger, or one, a row each. With Watch it returns when the context ends.
func Status(ctx context.Context, t storeuri.Target, o Options, s Screen) error {
	return open(ctx, t, o, func(l store.Ledger) error { return showStatus(ctx, t, l, o, s) })
}

// showStatus shows the worker types of a ledger.
func showStatus(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, s Screen) error {
	return glance(ctx, o, s, lookAtStatus(ctx, t, l, o, overview{width: s.Width}))
}

// lookAtStatus looks at the worker types of a ledger, for the width and with the newest slots that are set already.
func lookAtStatus(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, as overview) func() (overview, error) {
	return glimpses(ctx, t, l, o, func(ctx context.Context, l *charges.Ledger, found *overview) error {
		found.width, found.recent = as.width, as.recent
		err := found.take(ctx, l, o.WorkerType)
		if found.unread > 0 {
			found.warning = fmt.Sprintf("%s were not read within %v, and are not shown: raise --timeout, or name one by --worker-type", display.Count(found.unread, "worker type"), o.Timeout)
		}
		return err
	})
}

// overview are the worker types of a ledger at a moment.
type overview struct {
	glimpse

	types   []typeStatus
	refused map[string]error // types whose ledgers can't be read
	unread  int              // types for which there was no time
	invalid []string         // names that no worker type can have
	roster  bool             // it was read
	width   int              // of the terminal; 0 if it isn't known
	recent  int              // how many of the newest slots of each type are wanted, beside its state
}

// typeStatus is what matters of a worker type.
type typeStatus struct {
	workerType string
	schedule   string
	holder     history.Entry // whose lease is in force; its State is empty if there is none
	since      time.Time     // when its holder began
	last       history.Entry // the newest that is over; its State is empty if there is none
	next       slots.Slot    // the slot that begins next; zero if the schedule can't be read
	claimedBy  string        // who has claimed that
	present    int           // workers that are there, by the roster
	gone       int           // that should be there
	orders     []store.Order // of operators, in force
	rows       []history.Entry
	job        *store.JobTimes // by the workers that are there; nil if none says
	doneUntil  time.Time       // the end of the newest slot of a job that is done, or was skipped by a run that succeeded
	due        slots.Slot      // the one after that; zero without a job
	mayEnd     time.Time       // the end of the slot after that, which a run that goes on may skip
	recent     []Recent        // the newest slots, if they are wanted
	note       string
	warnings   []string
}

// statusRecords is how many records are read of each type.
const statusRecords = 40

// take reads a ledger.
func (s *overview) take(ctx context.Context, l *charges.Ledger, workerType string) error {
	if err := s.now(ctx, l); err != nil {
		return err
	}
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
	twins := Twins(names)
	tails, err := s.tails(ctx, l, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		records, read := tails[name]
		if !read {
			continue
		}
		if len(records) == 0 && workerType != "" && len(crews[name]) == 0 {
			if err := CheckType(ctx, l, name); err != nil {
				return err
			}
		}
		newest := records[:min(len(records), statusRecords)]
		one := statusOf(name, newest, s.at)
		if by := one.replaced(crews[name], s.at); by != "" {
			one = statusBy(name, newest, s.at, by)
		}
		one.recent = recentOf(records, s.at, s.recent)
		if one.schedule == "" {
			one.plan(scheduleIn(crews[name]), s.at) // Orders may have come before the first slot.
		}
		switch err := s.refused[name]; {
		case err != nil:
			one.warn("its ledger can't be read: %v", err)
		case len(records) == 0:
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

// tails are the newest records of worker types, by their names. If there is no time for all, those that were read will do: there
// may be any number of types in a store, of other programs, too.
func (s *overview) tails(ctx context.Context, l *charges.Ledger, names []string) (map[string][]store.Record, error) {
	var mu sync.Mutex
	tails := map[string][]store.Record{}
	s.refused = map[string]error{}
	err := storekit.Several(len(names), func(i int) error {
		records, _, err := l.Tail(ctx, names[i], max(statusRecords, 3*s.recent))
		refused := errors.Is(err, store.ErrRefused) && len(names) > 1 // Another program has overwritten it, and it alone.
		if err != nil && !refused {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if refused {
			s.refused[names[i]] = err
		}
		tails[names[i]] = records
		return nil
	})
	if err == nil && len(s.refused) == len(names) && len(names) > 1 {
		err = s.refused[names[0]]
	}
	if err != nil && (ctx.Err() == nil || len(tails) == 0) {
		return nil, err
	}
	s.unread = len(names) - len(tails)
	return tails, nil
}

// crews are the workers of the roster by type, if the ledger keeps one.
func (s *overview) crews(ctx context.Context, l *charges.Ledger, workerType string) (map[string][]store.Presence, error) {
	all, err := l.Presences(ctx, workerType)
	if WithoutRoster(err) {
		if errors.Is(err, store.ErrRefused) {
			s.warning = Unlisted(err)
		}
		return nil, nil
	}
	s.roster = len(all) > 0
	crews := map[string][]store.Presence{}
	for _, p := range all {
		crews[p.WorkerType] = append(crews[p.WorkerType], p)
	}
	return crews, err
}

// statusOf is what the newest records of a type say at a time, by the schedules that they name.
func statusOf(workerType string, records []store.Record, now time.Time) typeStatus {
	return statusBy(workerType, records, now, "")
}

// statusBy is statusOf by a schedule that has replaced theirs.
func statusBy(workerType string, records []store.Record, now time.Time, by string) typeStatus {
	schedule, _ := slots.Parse(by) // nil if there is none
	rows := history.Read(records, now, schedule)
	s := typeStatus{workerType: workerType, rows: rows, schedule: by}
	if holder, held := history.Holder(rows, now); held {
		s.holder, s.since = holder, holder.Window.Start
		if holder.State == history.Failed || holder.Overran(now) > 0 {
			s.note = holder.Note()
		}
	}
	for _, e := range slices.Backward(rows) {
		if e.State == history.Upcoming {
			s.claimedBy = holderOf(e)
		}
		if s.holder.State != "" && e.Record.Token == s.holder.Record.Token && hasEnded(e) && e.State != history.Skipped {
			s.since = e.Window.Start // Its lease goes on over several slots.
		}
		if s.last.State == "" && s.isOver(e, now) {
			s.last = e
		}
		if s.schedule == "" && e.Record.Schedule != "" && e.State != history.Poison && !e.Record.Triggered() {
			s.schedule = e.Record.Schedule
		}
	}
	if begun := store.FromMillis(s.holder.Record.Token); begun.Before(s.since) {
		s.since = begun // Its first grants are older than what was read.
	}
	s.plan(s.schedule, now)
	s.findDone(records)
	if n := len(rows); n > 0 {
		s.orders = slices.DeleteFunc(OrdersIn(records, now), s.isSpent)
		s.note = s.condition(rows, records[0])
	}
	return s
}

// hasEnded reports that an entry says what became of a slot, or of what somebody had of it.
func hasEnded(e history.Entry) bool {
	switch e.State {
	case history.Skipped, history.Expired, history.Released, history.Overridden, history.Missed, history.Done, history.Failed:
		return true
	case history.Upcoming, history.Held, history.Free, history.Poison:
	}
	return false
}

// isOver reports that a slot is over. It goes on while somebody holds it, whatever came of those that had it before. Nothing ran
// under one that was skipped, or given back before it began: that slot lasts to its end.
func (t typeStatus) isOver(e history.Entry, now time.Time) bool {
	unbegun := e.Unbegun || !e.ReleasedAt.After(e.Window.Start.Add(time.Millisecond))
	never := e.State == history.Skipped || e.State == history.Released && unbegun
	return hasEnded(e) && !t.holds(e.Slot) && (!never || !now.Before(e.Slot.End))
}

// holds reports that somebody holds a slot.
func (t typeStatus) holds(slot slots.Slot) bool { return t.holder.State != "" && t.holder.Slot == slot }

// condition is what of the newest records matters most, in words. The note of a holder stays.
func (t typeStatus) condition(rows []history.Entry, head store.Record) string {
	newest, notes := rows[len(rows)-1], []string{}
	switch {
	case len(t.orders) > 0:
		notes = append(notes, t.orderNote())
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

// holderOf names who has a slot.
func holderOf(e history.Entry) string {
	if e.Record.Group != "" {
		return e.Record.Group
	}
	return e.Record.InstanceID
}

// matters is what of the types is printed again if it changes.
func (s overview) matters(bool) string {
	var b strings.Builder
	for _, t := range s.types {
		fmt.Fprintln(&b, t.workerType, holderOf(t.holder), t.holder.Record.Token, t.last.State, t.last.Slot.Start, t.present, t.gone, t.notes())
	}
	return b.String()
}
