package move

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// newID is that of a move that begins.
func newID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // It doesn't fail.
	return hex.EncodeToString(id[:])
}

// land pauses the worker type on the second store, before anything is copied there: right above the record by which it was
// compared. So a claim there that is under way meets the pause at its key, however late it lands, and a move that breaks off is
// known by its id when it is repeated.
func (m *mover) land(ctx context.Context) error {
	switch {
	case m.landed:
		return nil
	case m.other.Seq == 0:
		return m.landFirst(ctx)
	}
	_, err := operate.On(m.to).Give(ctx, m.pauseAs(store.MoveArriving, func(below store.Record) error {
		if !same(below, m.other) {
			return fmt.Errorf("%w: record %d there is of %s", errChanged, below.Seq, writer(below))
		}
		return nil
	}))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSecond, err)
	}
	m.lowest = m.other.Seq + 3
	return nil
}

// apart returns ErrOptions if what is appended to the second store shows on the first: they are one. The record changes nothing,
// as it ends what isn't in force.
func (m *mover) apart(ctx context.Context) error {
	r, err := operate.On(m.to).End(ctx, operate.Order{
		WorkerType: m.o.WorkerType, Kind: store.OrderDrain, Target: m.id, InstanceID: m.o.InstanceID, Reason: "is it another store?",
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSecond, err)
	}
	is, err := m.isFrom(ctx, r)
	switch {
	case err != nil:
		return fmt.Errorf("the first store: %w", err)
	case is:
		return fmt.Errorf("%w: both stores are the same one: record %d shows on both", ErrOptions, r.Seq)
	}
	return nil
}

// landFirst does so on a store that has no record. The pause takes the place of the first ledger's first record, and says the
// same of the term in force, so that those above agree with it. If that was trimmed, it is older than all that comes.
func (m *mover) landFirst(ctx context.Context) error {
	const key = 1
	r, err := m.from.Get(ctx, m.o.WorkerType, key)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && r.Check() != nil:
		early := time.UnixMilli(1).UTC()
		r = store.Record{WorkerType: m.o.WorkerType, Seq: key, InstanceID: cmp.Or(m.o.InstanceID, "move"), Claim: m.id, Token: 1, WindowEnd: early}
	case err != nil:
		return fmt.Errorf("the first store: %w", err)
	}
	o := m.pauseAs(store.MoveArriving, nil)
	at := m.then.Truncate(time.Millisecond)
	order := store.Order{Kind: store.OrderPause, Target: o.Target, At: at, Until: at.Add(lasts), Now: o.Now, By: o.InstanceID, Why: o.Reason}
	text, err := json.Marshal(order)
	if err != nil {
		return err
	}
	r.Kind, r.WindowStart, r.Metadata = store.KindOrder, r.WindowEnd, string(text)
	r.FixedAt, r.ReadAt = time.Time{}, time.Time{}
	r.Worker = store.Worker{Version: workerlease.Version()}
	if r.Orders, err = store.FormatOrders([]store.Order{order}); err != nil {
		return err
	}
	m.lowest = key + 1
	if err := m.put(ctx, r); errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("%w: %w", errChanged, err)
	} else if err != nil {
		return err
	}
	return nil
}
