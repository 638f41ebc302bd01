package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// This file makes the records by which operators give orders. No worker writes one.

// ErrNoTerm is the error of Term if no term is in force.
var ErrNoTerm = errors.New("no term is in force")

// Term is the newest record of the term that may be in force, or of that of a claim, and
// its latest end: an order to release it is of no use after that.
func (b Below) Term(claim string, now timeline.Interval) (head store.Record, until time.Time, err error) {
	const longest = time.Hour // which a lease that goes on from slot to slot doesn't outlast unheard
	h := b.Head
	if claim != h.Claim {
		h = b.begun(now)
	}
	switch {
	case claim != "" && claim != h.Claim:
		return h, time.Time{}, fmt.Errorf("%w with claim %.64q: record %d has another", ErrNoTerm, claim, h.Seq)
	case h.Seq == 0 || h.Kind == store.KindRelease || ledger.Supersedes(h) || !now.Earliest.Before(h.WindowEnd):
		return h, time.Time{}, ErrNoTerm
	case h.Group != "":
		return h, time.Time{}, fmt.Errorf("group %q holds it, which no member releases", h.Group)
	}
	until = later(h.WindowEnd, h.SlotEnd)
	if most := now.Latest.Add(longest); until.After(most) {
		until = most
	}
	return h, ceil(until), nil
}

// begun is the newest record of the term before the one in the head, if that is of a slot which has not begun; else the head.
func (b Below) begun(now timeline.Interval) store.Record {
	if next, ok := granted(b.Head); !ok || !next.WindowStart.After(now.Latest) {
		return b.Head
	}
	reader := ledger.At(now.Latest)
	for i, r := range b.records {
		if r.Claim == b.Head.Claim || reader.Impossible(b.records[i:]) {
			continue
		}
		if _, ok := granted(r); ok && now.Earliest.Before(r.WindowEnd) {
			return r
		}
		break
	}
	return b.Head
}

// Orders are those in the head that may be in force.
func (b Below) Orders(now timeline.Interval) []store.Order { return b.Head.OrdersAt(now.Earliest) }

// Order completes the record of an operator that brings an order, or ends one: it changes no
// term. In an empty ledger it has the claim that is given, as no term is in force there.
func (b Below) Order(o store.Order, r store.Record, readAt time.Time, now timeline.Interval) (store.Record, error) {
	o = b.younger(o, now)
	orders, err := store.FormatOrders(store.WithOrder(b.Orders(now), o))
	if err != nil {
		return store.Record{}, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return store.Record{}, err
	}
	h := b.Head
	r.Seq, r.Kind = h.Seq+1, store.KindOrder
	r.Orders, r.Metadata = orders, string(text)
	r.FixedAt, r.ReadAt = now.Earliest.Truncate(time.Millisecond), readAt
	if h.Seq == 0 {
		at, token := Standard.Reset(store.Record{}, now)
		r.WindowStart, r.WindowEnd, r.Token = at, at, token
		return r.Truncated(), nil
	}
	r = Standard.Repeat(r, h)
	r.DoneUntil, r.Done = h.DoneUntil, known(h).String()
	return r.Truncated(), nil
}

// younger is an order that is given later than all that the head shows: workers tell by that which one they have
// not heard of, and its writer may know the time less well than those of the others.
func (b Below) younger(o store.Order, now timeline.Interval) store.Order {
	all, _ := store.ParseOrders(b.Head.Orders)
	if last, is := b.Head.Order(); is {
		all = append(all, last)
	}
	at, most := o.At, now.Latest.Add(Standard.Ahead) // No operator's client has written what is later.
	for _, each := range all {
		if !each.At.Before(at) && !each.At.After(most) {
			at = each.At.Add(time.Millisecond)
		}
	}
	switch {
	case o.Removes():
		o.At, o.Until = at, at
	case o.Until.After(at):
		o.At = at
	}
	return o
}
