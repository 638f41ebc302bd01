package inspect

import (
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

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

// orderNote says which orders are in force: what matters most first, since a note is clipped.
func (t typeStatus) orderNote() string {
	var words []string
	matters := func(o store.Order) int {
		switch role, _ := o.Move(); {
		case role != "":
			return 0
		case o.Kind != store.OrderTrigger: // A trigger waits for the end of a pause.
			return 1
		}
		return 2
	}
	for _, o := range slices.SortedStableFunc(slices.Values(t.orders), func(a, b store.Order) int { return matters(a) - matters(b) }) {
		if matters(o) == 0 {
			words = append(words, o.Why)
			continue
		}
		text := o.String()
		if h := t.holder; o.Kind == store.OrderTrigger && h.Record.Triggered() && h.Record.SlotStart.Equal(o.At) && h.State != history.Failed {
			text = strings.Replace(text, "to begin before "+store.Format(o.Until), "under way since "+store.Format(h.Window.Start), 1)
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}
