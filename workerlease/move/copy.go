package move

import (
	"context"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/store"
)

// hand copies what the workers on the second store need. The first is the newest record, with the pause: so the second
// store is paused as long as the first has a holder, and what it appends meanwhile, such as that work is done, follows.
func (m *mover) hand(ctx context.Context) error {
	if err := m.put(ctx, m.result.Paused); err != nil {
		return err
	}
	m.begin(m.result.Paused)
	// Without the records right below it, workers there can't obey it for long if there are others further down.
	if err := m.below(ctx, needed); err != nil {
		return err
	}
	if err := m.fence(ctx); err != nil {
		return err
	}
	if err := m.wait(ctx); err != nil {
		return err
	}
	return m.follow(ctx)
}

// begin begins with a record that was copied.
func (m *mover) begin(head store.Record) {
	m.result.Head, m.oldest, m.result.Copied = head, head.Seq, 1
}

// fence makes sure that nobody has claimed on the second store since it was compared, or does so yet: whoever has looked
// before the pause was there appends to the record that was the newest then. If the first ledger has the next one, its
// copy takes that place.
func (m *mover) fence(ctx context.Context) error {
	next := m.there + 1
	if next >= m.oldest {
		return nil
	}
	r, err := m.from.Get(ctx, m.o.WorkerType, next)
	switch {
	case err == nil && r.Check() == nil:
		return m.put(ctx, r)
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("the first store: %w", err)
	}
	switch r, err := m.to.Get(ctx, m.o.WorkerType, next); {
	case err == nil:
		return fmt.Errorf("%w: %s has appended record %d there meanwhile", ErrUsed, r.InstanceID, next)
	case !errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("the second store: %w", err)
	}
	return nil
}

// below copies the records below the oldest, newest first, as far as they are there, until so many have been copied. A
// record that the second store had before ends that.
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
		if err := m.put(ctx, r); errors.Is(err, store.ErrConflict) && r.Seq <= m.there {
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
		if err := m.put(ctx, r); err != nil {
			return err
		}
		m.result.Head = r
		m.result.Copied++
	}
}

// put stores a record in the second ledger, unless it is there already. store.ErrConflict says that there is another.
func (m *mover) put(ctx context.Context, r store.Record) error {
	var err error
	for range tries {
		if err = m.to.Append(ctx, r); err == nil {
			return nil
		}
		if errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrInvalid) || ctx.Err() != nil {
			break
		}
		there, getErr := m.to.Get(ctx, r.WorkerType, r.Seq)
		switch {
		case getErr == nil && there == r.Truncated():
			return nil
		case getErr == nil:
			return fmt.Errorf("%w: it has another record %d than the first: %w", ErrUsed, r.Seq, store.ErrConflict)
		}
		if err := m.sleep(ctx, settles); err != nil {
			return err
		}
	}
	return fmt.Errorf("the second store: %w", err)
}
