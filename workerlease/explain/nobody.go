package explain

import (
	"slices"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// whyNobody finds why nobody had the slot.
func (x *asked) whyNobody() {
	e := &x.e
	if len(e.Terms) > 0 || e.When == Future || e.Unread || e.Slot.IsZero() {
		return
	}
	if e.Skipped != nil {
		e.Nobody = []Cause{{Reason: StillRunning, Record: e.Skipped.Record}}
		return
	}
	if o := x.ordered(store.OrderPause, ""); o != nil {
		e.Nobody = append(e.Nobody, Cause{Reason: Paused, Order: o})
	}
	x.poisoned()
	record := slices.ContainsFunc(e.Nobody, func(c Cause) bool { return c.Reason == Poisoned })
	for _, reason := range []Reason{Unreachable, Refused, Poisoned, WentBack, Overran, ClockUnfit, NotEligible, TooLate} {
		if reason == Poisoned && record {
			continue // The record itself says it.
		}
		c := Cause{Reason: reason}
		for _, v := range e.Workers {
			if v.Reason == reason && v.Certain {
				c.Workers = append(c.Workers, v.InstanceID)
			}
		}
		if len(c.Workers) > 0 {
			e.Nobody = append(e.Nobody, c)
		}
	}
	drained := x.drained()
	away := func(v Verdict) bool {
		return v.Certain && slices.Contains([]Reason{Absent, Stopped, NotStarted}, v.Reason)
	}
	if len(x.Presences) > 0 && !drained && !slices.ContainsFunc(e.Workers, func(v Verdict) bool { return !away(v) }) {
		e.Nobody = append(e.Nobody, Cause{Reason: NobodyThere})
	}
	if len(e.Nobody) == 0 && e.When == Past {
		e.Nobody = []Cause{{Reason: Unknown}}
	}
}

// drained adds the orders by which workers were kept from claiming, one for each host, if any were.
func (x *asked) drained() bool {
	n := len(x.e.Nobody)
	for _, v := range x.e.Workers {
		if v.Reason != Drained || !v.Certain {
			continue
		}
		same := func(c Cause) bool { return c.Reason == Drained && c.Order == v.Order }
		i := slices.IndexFunc(x.e.Nobody, same)
		if i < 0 {
			i = len(x.e.Nobody)
			x.e.Nobody = append(x.e.Nobody, Cause{Reason: Drained, Order: v.Order})
		}
		x.e.Nobody[i].Workers = append(x.e.Nobody[i].Workers, v.InstanceID)
	}
	return len(x.e.Nobody) > n
}

// poisoned adds what couldn't be obeyed, or left nothing to claim, in the time of the slot: a record that stands
// between that of the last holder and that of the next.
func (x *asked) poisoned() {
	since := false
	for i, row := range x.rows {
		switch {
		case row.Record.Kind == store.KindGrant && row.State != history.Poison:
			since = !row.Slot.Start.After(x.e.Slot.Start)
		case row.State == history.Poison && since && row.Record.Seq > 0:
			x.e.Nobody = append(x.e.Nobody, Cause{Reason: Poisoned, Record: row.Record, Detail: row.Defect})
		}
		if !row.BlocksUntil.IsZero() && x.e.Slot.Start.Before(row.BlocksUntil) && i == len(x.rows)-1 {
			c := Cause{Reason: Poisoned, Detail: "nothing can be claimed until " + store.Format(row.BlocksUntil)}
			c.Record.Seq = row.BlockedBy
			x.e.Nobody = append(x.e.Nobody, c)
		}
	}
}
