package explain

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// findOrders finds the orders that were in force when the slot was decided, those in force at the time that is asked about, and those
// that were about who had the slot.
func (x *asked) findOrders() {
	from, to := x.decided(), x.decided()
	switch {
	case x.e.Slot.IsZero():
		from, to = x.At, x.At
	case x.contested() == nil:
		// Nobody claimed it: what was in force at any time in it counts.
		to = x.e.Slot.End
		if x.Now.Before(to) && x.Now.After(from) {
			to = x.Now
		}
	}
	x.e.Orders, x.e.InForce = x.ordersWithin(from, to), x.ordersWithin(x.At, x.At)
	for _, o := range x.ordersWithin(time.Time{}, x.Now) {
		of := func(t history.Entry) bool { return o.Target == t.Record.Claim && o.At.Before(t.Window.End) }
		if o.Kind == store.OrderRelease && slices.ContainsFunc(x.e.Terms, of) {
			x.e.Asked = append(x.e.Asked, o)
		}
	}
}

// ordersWithin are the orders that were in force at some time between two, up to when they were. They are in every record
// as long as they are in force, and the record that ended one early, or took its place, says when.
func (x *asked) ordersWithin(from, to time.Time) (found []store.Order) {
	type key struct {
		kind   store.OrderKind
		target string
		at     time.Time
	}
	ends, order := map[key]time.Time{}, []store.Order(nil)
	for r := range x.oldestFirst() {
		if o, ok := r.Order(); ok {
			for k, end := range ends {
				old := []store.Order{{Kind: k.kind, Target: k.target, At: k.at, Until: end}}
				if stays := slices.Contains(store.WithOrder(old, o), old[0]); !stays && k.at.Before(o.At) && o.At.Before(end) {
					ends[k] = o.At
				}
			}
		}
		orders, err := store.ParseOrders(r.Orders)
		if err != nil {
			continue
		}
		for _, o := range orders {
			k := key{o.Kind, o.Target, o.At}
			if _, known := ends[k]; !known && !o.Removes() {
				ends[k] = o.Until
				order = append(order, o)
			}
		}
	}
	for _, o := range order {
		if end := ends[key{o.Kind, o.Target, o.At}]; !o.At.After(to) && end.After(from) {
			o.Until = end
			found = append(found, o)
		}
	}
	return found
}

// ordered is the newest order of a kind, about a target if that isn't empty; nil if there is none.
func (x *asked) ordered(kind store.OrderKind, target string) *store.Order {
	for i, o := range slices.Backward(x.e.Orders) {
		if o.Kind == kind && (target == "" || o.Target == target) {
			return &x.e.Orders[i]
		}
	}
	return nil
}
