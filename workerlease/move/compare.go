package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
)

// compare refuses stores between which nothing can be moved. It changes nothing. It reports that all was copied by an
// earlier move, whose end is perhaps missing.
func (m *mover) compare(ctx context.Context) (copied bool, err error) {
	head, now, err := m.look(ctx, m.from)
	switch {
	case err != nil:
		return false, fmt.Errorf("the first store: %w", err)
	case head.Seq == 0:
		return false, ErrNothing
	}
	other, then, err := m.look(ctx, m.to)
	if err != nil {
		return false, fmt.Errorf("the second store: %w", err)
	}
	m.there = other.Seq
	if m.result.Apart = then.Time.Sub(now.Time); m.result.Apart.Abs() > MaxApart {
		return false, fmt.Errorf("%w: by %v, at most %v allowed: set the clock that is wrong", ErrApart, m.result.Apart.Round(time.Millisecond), MaxApart)
	}
	pause, paused := pauseOf(head, now.Time)
	left := paused && strings.HasPrefix(pause.Why, moved)
	if paused && other.Seq > head.Seq || left && other.Seq == head.Seq {
		copied, err := has(ctx, m.to, head)
		if err != nil {
			return false, fmt.Errorf("the second store: %w", err)
		}
		if copied {
			m.begin(head)
			m.result.Paused = head
			return true, nil
		}
	}
	here, err := m.broke(ctx, head, other)
	switch {
	case err != nil:
		return false, fmt.Errorf("the first store: %w", err)
	case left && !here:
		return false, fmt.Errorf("%w than the second one: on the first, %s", ErrMoved, pause)
	case paused && !ofMove(pause):
		return false, fmt.Errorf("%w: on the first store, %s", ErrPaused, pause)
	case other.Seq == 0:
		return false, nil
	}
	if err := m.keeps(ctx, head, other, now.Time, then.Time); err != nil {
		return false, err
	}
	switch {
	case other.Seq > head.Seq || other.Token > head.Token:
		return false, fmt.Errorf("%w: its newest record there is %d with token %d, that on the first is %d with token %d", ErrUsed, other.Seq, other.Token, head.Seq, head.Token)
	case other.WindowEnd.After(then.Time):
		same, err := has(ctx, m.from, other)
		if err != nil {
			return false, fmt.Errorf("the first store: %w", err)
		}
		if !same {
			return false, fmt.Errorf("%w: %s holds the lease there until %s", ErrUsed, other.InstanceID, store.Format(other.WindowEnd))
		}
	}
	if pause, paused := pauseOf(other, then.Time); paused && !ofMove(pause) {
		return false, fmt.Errorf("%w: on the second store, %s", ErrPaused, pause)
	}
	return false, nil
}

// keeps returns ErrOrders if orders are in force on the second store that the first hasn't got. head and other are the
// newest records, and the times those of the stores. While somebody holds the lease there, it is in use, which is worse.
func (m *mover) keeps(ctx context.Context, head, other store.Record, now, then time.Time) error {
	lost := others(other.OrdersAt(then), head.OrdersAt(now))
	if len(lost) == 0 || other.WindowEnd.After(then) {
		return nil
	}
	switch same, err := has(ctx, m.from, other); {
	case err != nil:
		return fmt.Errorf("the first store: %w", err)
	case same:
		return nil // It has them from the first store, where they were ended since.
	}
	return fmt.Errorf("%w: %s: give them on the first, from where they come along, or end them", ErrOrders, strings.Join(lost, "; "))
}

// others are those of some orders that aren't among others, for as long. Pauses are looked at elsewhere, and a claim that
// is to be released has ended.
func others(orders, among []store.Order) (lost []string) {
	for _, o := range orders {
		same := func(x store.Order) bool { return x.Kind == o.Kind && x.Target == o.Target && !x.Until.Before(o.Until) }
		if o.Kind != store.OrderPause && o.Kind != store.OrderRelease && !slices.ContainsFunc(among, same) {
			lost = append(lost, o.String())
		}
	}
	return lost
}

// broke reports that a move to the second store broke off right before its end: that has all of the first ledger that
// was there when the worker type left it, and no other move began since. head and other are the newest records.
func (m *mover) broke(ctx context.Context, head, other store.Record) (bool, error) {
	if other.Seq == 0 || other.Seq >= head.Seq || head.Seq-other.Seq > needed {
		return false, nil
	}
	if same, err := has(ctx, m.from, other); !same || err != nil {
		return false, err
	}
	for seq := other.Seq + 1; seq <= head.Seq; seq++ {
		r, err := m.from.Get(ctx, m.o.WorkerType, seq)
		if err != nil {
			return false, err
		}
		if o, is := r.Order(); is && o.Kind == store.OrderPause && strings.HasPrefix(o.Why, moving) {
			return false, nil
		}
	}
	return true, nil
}

// pauseOf is the pause in force in a record, or false if there is none.
func pauseOf(r store.Record, now time.Time) (store.Order, bool) {
	all := r.OrdersAt(now)
	if i := slices.IndexFunc(all, func(o store.Order) bool { return o.Kind == store.OrderPause }); i >= 0 {
		return all[i], true
	}
	return store.Order{}, false
}

// ofMove reports that a pause is that of a move.
func ofMove(o store.Order) bool {
	return strings.HasPrefix(o.Why, moving) || strings.HasPrefix(o.Why, moved)
}

// has reports that a ledger has a record of the other.
func has(ctx context.Context, l store.Ledger, r store.Record) (bool, error) {
	same, err := l.Get(ctx, r.WorkerType, r.Seq)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && same == r, err
}
