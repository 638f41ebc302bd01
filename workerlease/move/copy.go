package move

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

var (
	// errChanged: the second store isn't any more what it was when it was compared.
	errChanged = errors.New("the second store changes all the time")
	// errBeside: the second store has another record where one is to be copied, which an operator's order brought.
	errBeside = errors.New("there is another order")
	// errMore: the first store has records that aren't copied.
	errMore = errors.New("there are newer records")
	// errLeft: the same move, repeated, has come to its end.
	errLeft = errors.New("the worker type has left the first store")
	// errEnded: there is no pause any more.
	errEnded = errors.New("the pause has ended")
)

// hand copies what the workers on the second store need, waits for the end of the lease, and lets the worker type leave
// the first store. That is appended right above the newest record that was copied: so the second store has all
// there was, and nothing is to be copied after that.
func (m *mover) hand(ctx context.Context) error {
	for {
		err := m.handOnce(ctx)
		switch {
		case errors.Is(err, errLeft):
			return nil
		case errors.Is(err, errBeside):
			newest, _, err := m.look(ctx, m.to)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrSecond, err)
			}
			m.lowest = newest.Seq + 2 // Its orders are brought by top.
		case !errors.Is(err, errMore):
			return err
		}
	}
}

func (m *mover) handOnce(ctx context.Context) error {
	for _, step := range []func(context.Context) error{m.top, m.wait, m.follow, m.untouched, m.leave} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// top copies the newest record, which has the pause, and those right below it: without them, workers can't obey it for
// long if there are others further down. It stands above all that the second store has.
func (m *mover) top(ctx context.Context) error {
	if err := m.given(ctx); err != nil {
		return err
	}
	for _, o := range m.lost {
		if err := m.bring(ctx, o); err != nil {
			return err
		}
	}
	m.lost = nil
	for m.result.Paused.Seq < m.lowest {
		if m.lowest-m.result.Paused.Seq > 2*needed {
			return fmt.Errorf("%w: its newest record there is %d, that on the first is %d", ErrUsed, m.lowest, m.result.Paused.Seq)
		}
		if err := m.pause(ctx, store.MoveLeaving, m.mayLeave); err != nil {
			return err
		}
	}
	if err := m.put(ctx, m.result.Paused); err != nil {
		return err
	}
	m.begin(m.result.Paused)
	if err := m.below(ctx, needed); !errors.Is(err, errBeside) {
		return err
	}
	return nil // The order stands below what workers go by.
}

// given finds what operators have ordered on the second store since it was compared, above all that was copied there.
func (m *mover) given(ctx context.Context) error {
	newest, stamp, err := m.look(ctx, m.to)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrSecond, err)
	case newest.Seq <= m.result.Head.Seq, !isOf(newest, store.MoveArriving, m.id):
		return nil
	}
	had, _ := store.ParseOrders(m.other.Orders)
	since := slices.DeleteFunc(newest.OrdersAt(stamp.Time), func(o store.Order) bool { return slices.Contains(had, o) })
	if lost := lacking(since, m.result.Paused.OrdersAt(m.now)); len(lost) > 0 {
		m.lost, m.lowest = append(m.lost, lost...), max(m.lowest, newest.Seq+2)
	}
	return nil
}

// bring gives an order on the first store that was given on the second while the move was under way, so that it comes along.
func (m *mover) bring(ctx context.Context, o store.Order) (err error) {
	var r store.Record
	switch o.Kind {
	case store.OrderPrefer, store.OrderDrain, store.OrderTrigger:
		r, err = operate.On(m.from).Give(ctx, operate.Order{Kind: o.Kind, WorkerType: m.o.WorkerType, Target: o.Target, Until: o.Until, InstanceID: o.By, Reason: o.Why})
	case store.OrderPause, store.OrderRelease:
		fallthrough
	default:
		return errOfOrders([]store.Order{o})
	}
	switch {
	case errors.Is(err, workerlease.ErrOptions):
		return nil // Its time has come.
	case err != nil:
		return fmt.Errorf("an order of the second store, on the first: %w", err)
	}
	m.result.Paused = r
	return m.paused(r)
}

// begin begins with a record that was copied.
func (m *mover) begin(head store.Record) {
	m.result.Head, m.oldest, m.result.Copied = head, head.Seq, 1
}

// below copies the records below the oldest, newest first, as far as they are there, until so many have been copied.
func (m *mover) below(ctx context.Context, most int) error {
	for m.result.Copied < most && m.oldest > 1 {
		r, err := m.from.Get(ctx, m.o.WorkerType, m.oldest-1)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil // It was trimmed.
		case err != nil:
			return fmt.Errorf("the first store: %w", err)
		case r.Check() != nil:
			return nil // Nobody can obey it, and so nothing below it is needed.
		}
		if err := m.put(ctx, r); m.resumed && errors.Is(err, store.ErrConflict) {
			return nil
		} else if err != nil {
			return err
		}
		m.oldest--
		m.result.Copied++
	}
	return nil
}

// follow copies what the first ledger has got above the head since. A record without the pause isn't copied: it would
// let workers on the second store claim, while those on the first do.
func (m *mover) follow(ctx context.Context) error {
	for {
		r, err := m.from.Get(ctx, m.o.WorkerType, m.result.Head.Seq+1)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the first store: %w", err)
		}
		if err := m.paused(r); err != nil {
			return err
		}
		if isOf(r, store.MoveLeft, m.id) {
			m.result.Paused = r
			return errLeft
		}
		if err := m.put(ctx, r); err != nil {
			return err
		}
		m.result.Head = r
		m.result.Copied++
	}
}

// leave lets the worker type leave the first store, if its newest record was copied. From then on it isn't moved from
// there once more, and its pause isn't ended by mistake.
func (m *mover) leave(ctx context.Context) error {
	return m.pause(ctx, store.MoveLeft, func(below store.Record) error {
		if !same(below, m.result.Head) {
			return errMore
		}
		return nil
	})
}

// put stores a record in the second ledger as it stands there, unless it is there already. An error that wraps
// store.ErrConflict says that there is another: errBeside if that obeys the move, or else ErrUsed.
func (m *mover) put(ctx context.Context, r store.Record) error {
	r, err := m.as(r)
	if err != nil {
		return err
	}
	for range tries {
		if err = m.to.Append(ctx, r); err == nil {
			return nil
		}
		if errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrInvalid) || ctx.Err() != nil {
			break
		}
		there, getErr := m.to.Get(ctx, r.WorkerType, r.Seq)
		switch {
		case getErr == nil && alike(there, r.Truncated()):
			return nil
		case getErr == nil:
			return m.beside(there)
		}
		if err := m.sleep(ctx, settles); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrSecond, err)
}

// beside is the error of another record in the place of one that is to be copied.
func (m *mover) beside(there store.Record) error {
	if !isOf(there, store.MoveArriving, m.id) {
		return fmt.Errorf("%w: %s has appended record %d there: %w", ErrUsed, writer(there), there.Seq, store.ErrConflict)
	}
	return fmt.Errorf("%w: record %d: %w", errBeside, there.Seq, store.ErrConflict)
}

// as is a record of the first ledger as it stands on the second one. There the pause of this move says that the worker type
// comes. So an operator who ends it here gives up the move, and can't end it there by mistake. And an old record there doesn't
// show that those below it are old: so none is trimmed as long as a claim may come late that was made before the move.
func (m *mover) as(r store.Record) (store.Record, error) {
	const void = time.Hour // How old a claim may be.
	if r.ReadAt.Before(m.then.Add(void + MaxApart - workerlease.MinRetention)) {
		r.ReadAt = time.Time{}
	}
	orders, err := store.ParseOrders(r.Orders)
	if err != nil || !isOf(r, store.MoveLeaving, m.id) {
		return r, nil
	}
	arrives := func(o store.Order) store.Order {
		if role, id := o.Move(); role == store.MoveLeaving && id == m.id {
			o.Target, o.Now = store.PauseOfMove(store.MoveArriving, m.id), true
			o.Why = reasons[store.MoveArriving] + strings.TrimPrefix(o.Why, reasons[store.MoveLeaving])
		}
		return o
	}
	for i := range orders {
		orders[i] = arrives(orders[i])
	}
	if r.Orders, err = store.FormatOrders(orders); err != nil {
		return r, err
	}
	if o, is := r.Order(); is {
		text, err := json.Marshal(arrives(o))
		if err != nil {
			return r, err
		}
		r.Metadata = string(text)
	}
	return r, nil
}

// untouched returns ErrUsed if somebody has appended to the second store in spite of the pause, above what was copied there, or
// below it, where the pause stands since before that: a worker that doesn't know orders. It returns ErrLost if the newest copy isn't
// there any more.
func (m *mover) untouched(ctx context.Context) error {
	records, _, err := m.to.Tail(ctx, m.o.WorkerType, m.result.Copied+2*needed)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSecond, err)
	}
	newest, below := 0, slices.IndexFunc(records, func(r store.Record) bool { return r.Seq < m.oldest })
	for _, i := range []int{newest, below} {
		if i >= 0 && i < len(records) && !isOf(records[i], store.MoveArriving, m.id) {
			return fmt.Errorf("%w: %s has appended record %d there, in spite of the pause", ErrUsed, writer(records[i]), records[i].Seq)
		}
	}
	switch there, err := m.has(ctx, m.result.Head); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrSecond, err)
	case !there:
		return fmt.Errorf("%w: record %d isn't there any more", ErrLost, m.result.Head.Seq)
	}
	return nil
}
