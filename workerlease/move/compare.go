package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// stage is how far an earlier move from the first store to the second has come.
type stage int

const (
	begins stage = iota // It hasn't left the first store.
	ends                // It has, and the second is paused yet.
	ended               // Workers on the second store may claim.
)

// compare refuses stores between which nothing can be moved. It changes nothing.
func (m *mover) compare(ctx context.Context) (stage, error) {
	head, now, err := m.look(ctx, m.from)
	switch {
	case err != nil:
		return begins, fmt.Errorf("the first store: %w", err)
	case head.Seq == 0:
		return begins, ErrNothing
	}
	other, then, err := m.look(ctx, m.to)
	if err != nil {
		return begins, fmt.Errorf("%w: %w", ErrSecond, err)
	}
	m.now, m.then, m.other, m.came = now.Time, then.Time, other, false
	if m.result.Apart = then.Time.Sub(now.Time); m.result.Apart.Abs() > MaxApart {
		return begins, fmt.Errorf("%w: by %v, at most %v allowed: set the clock that is wrong", ErrApart, m.result.Apart.Round(time.Millisecond), MaxApart)
	}
	pause, _ := pauseOf(head, m.now)
	if role, id := pause.Move(); role == store.MoveLeft {
		m.id = id
		return m.left(ctx, head, pause)
	}
	there, _ := pauseOf(other, m.then)
	role, id := there.Move()
	if m.landed = role == store.MoveArriving; !m.landed {
		id = newID()
	}
	m.id = id
	if err := m.mayLeave(head); err != nil {
		return begins, err
	}
	return begins, m.fits(ctx, head)
}

// left is how far the move has come by which the worker type has left the first store. It was to the second one if that has a
// copy of the record right below, or the pause of the move yet.
func (m *mover) left(ctx context.Context, head store.Record, pause store.Order) (stage, error) {
	elsewhere := fmt.Errorf("%w than the second one, or its records there were trimmed, or lost: on the first, %s", ErrMoved, pause)
	last := head
	for isOf(last, store.MoveLeft, m.id) {
		below, err := m.from.Get(ctx, m.o.WorkerType, last.Seq-1)
		if errors.Is(err, store.ErrNotFound) {
			return ended, elsewhere
		}
		if err != nil {
			return ended, fmt.Errorf("the first store: %w", err)
		}
		last = below
	}
	here, err := m.has(ctx, last)
	if err != nil {
		return ended, fmt.Errorf("%w: %w", ErrSecond, err)
	}
	if !here && !isOf(m.other, store.MoveArriving, m.id) {
		return ended, elsewhere
	}
	m.begin(last)
	m.result.Step, m.result.Paused = StepResume, head
	if !here { // It was lost there, with the pause in force.
		if err := m.put(ctx, last); err != nil {
			return ended, err
		}
		if err := m.below(ctx, needed); err != nil && !errors.Is(err, errBeside) {
			return ended, err
		}
		if m.other, _, err = m.look(ctx, m.to); err != nil {
			return ended, fmt.Errorf("%w: %w", ErrSecond, err)
		}
	}
	there, paused := pauseOf(m.other, m.then)
	switch {
	case !paused:
		return ended, nil
	case isOf(m.other, store.MoveArriving, m.id):
		return ends, nil
	}
	return ended, fmt.Errorf("%w: on the second store, %s", ErrPaused, there)
}

// fits returns why nothing can be moved onto what the second store has. head is the newest record of the first.
func (m *mover) fits(ctx context.Context, head store.Record) error {
	other := m.other
	if other.Seq == 0 {
		return nil
	}
	// What came from the first store is that of its holder, and so are the orders, which may have ended there since.
	came, err := m.isFrom(ctx, other)
	if m.came = came; err != nil {
		return fmt.Errorf("the first store: %w", err)
	}
	pause, paused := pauseOf(other, m.then)
	role, _ := pause.Move()
	if m.lowest = other.Seq + 2; came {
		m.lowest = other.Seq
	}
	held := other.WindowEnd.After(m.then) && !came && !m.landed
	switch lost := m.lacking(head, pause); {
	case len(lost) == 0 || held || came:
	case m.landed: // They were given since, for when the worker type is there.
		m.lost = lost
	default:
		return errOfOrders(lost)
	}
	switch {
	case other.Seq > head.Seq+needed, other.Token > head.Token:
		return fmt.Errorf("%w: its newest record there is %d with token %d, that on the first is %d with token %d", ErrUsed, other.Seq, other.Token, head.Seq, head.Token)
	case held:
		return fmt.Errorf("%w: %s holds the lease there until %s", ErrUsed, other.InstanceID, store.Format(other.WindowEnd))
	case paused && (role == "" || role == store.MoveLeaving):
		return fmt.Errorf("%w: on the second store, %s", ErrPaused, pause)
	}
	return nil
}

// findOthers finds the workers of other versions than this program on both stores.
func (m *mover) findOthers(ctx context.Context) error {
	first, err := m.others(ctx, m.from, "the first store")
	if err != nil {
		return fmt.Errorf("the first store: %w", err)
	}
	second, err := m.others(ctx, m.to, "the second store")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSecond, err)
	}
	m.result.Others = slices.Concat(first, second)
	return nil
}

// others are the workers of other versions than this program on a store, by its newest records, and by its roster if that can be
// read, which no worker needs.
func (m *mover) others(ctx context.Context, l store.Ledger, where string) (all []string, err error) {
	add := func(instance, host, version string) {
		text := fmt.Sprintf("%q on host %q, version %q, with %s", instance, host, version, where)
		if version != workerlease.Version() && version != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	records, stamp, err := l.Tail(ctx, m.o.WorkerType, needed)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.Kind == store.KindGrant {
			add(r.InstanceID, r.Worker.Host, r.Worker.Version)
		}
	}
	if roster, ok := store.As[store.Roster](l); ok {
		crew, _ := roster.Presences(ctx, m.o.WorkerType)
		for _, p := range crew {
			if stamp.IsZero() || workerlease.IsPresent(p, stamp.Time) {
				add(p.InstanceID, p.Host, p.Version)
			}
		}
	}
	return all, nil
}

// lacking are the orders in force on the second store that the first hasn't got. What was given before the worker type left the
// second store, came along to where it went, and may have ended there.
func (m *mover) lacking(head store.Record, pause store.Order) (lost []store.Order) {
	orders := m.other.OrdersAt(m.then)
	if role, _ := pause.Move(); role == store.MoveLeft {
		orders = slices.DeleteFunc(orders, func(o store.Order) bool { return o.At.Before(pause.At) })
	}
	return lacking(orders, head.OrdersAt(m.now))
}

func errOfOrders(lost []store.Order) error {
	var texts []string
	for _, o := range lost {
		texts = append(texts, o.String())
	}
	return fmt.Errorf("%w: %s: give them on the first, from where they come along, or end them", ErrOrders, strings.Join(texts, "; "))
}

// lacking are those of some orders that aren't among others, for as long. Pauses are looked at elsewhere, and a claim that
// is to be released has ended.
func lacking(orders, among []store.Order) (lost []store.Order) {
	for _, o := range orders {
		same := func(x store.Order) bool { return x.Kind == o.Kind && x.Target == o.Target && !x.Until.Before(o.Until) }
		if o.Kind != store.OrderPause && o.Kind != store.OrderRelease && !slices.ContainsFunc(among, same) {
			lost = append(lost, o)
		}
	}
	return lost
}

// pauseOf is the pause in force in a record, or false if there is none.
func pauseOf(r store.Record, now time.Time) (store.Order, bool) {
	all := r.OrdersAt(now)
	if i := slices.IndexFunc(all, func(o store.Order) bool { return o.Kind == store.OrderPause }); i >= 0 {
		return all[i], true
	}
	return store.Order{}, false
}

// isOf reports that a record has a pause of a move, in force or not.
func isOf(r store.Record, role store.MoveRole, id string) bool {
	all, _ := store.ParseOrders(r.Orders)
	return slices.ContainsFunc(all, func(o store.Order) bool {
		has, of := o.Move()
		return has == role && of == id
	})
}

// same reports that a record of a ledger is another one of it.
func same(a, b store.Record) bool { return a.Seq == b.Seq && a.Kind == b.Kind && a.Claim == b.Claim }

// has reports that the second ledger has a copy of a record of the first.
func (m *mover) has(ctx context.Context, r store.Record) (bool, error) {
	there, err := m.to.Get(ctx, r.WorkerType, r.Seq)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && m.isCopy(there, r), err
}

// isFrom reports that a record of the second ledger is a copy from the first.
func (m *mover) isFrom(ctx context.Context, there store.Record) (bool, error) {
	r, err := m.from.Get(ctx, there.WorkerType, there.Seq)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && m.isCopy(there, r), err
}

func (m *mover) isCopy(there, r store.Record) bool {
	copied, err := m.as(r)
	return err == nil && alike(copied.Truncated(), there)
}

// alike reports that records are equal but for when their writers read the ledger, which a copy may lack.
func alike(a, b store.Record) bool {
	a.ReadAt, b.ReadAt = time.Time{}, time.Time{}
	return a == b
}
