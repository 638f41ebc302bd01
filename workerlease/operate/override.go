package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/option"
	"github.com/slotlease/slotlease/workerlease/internal/self"
)

// OverrideOptions of Override. WorkerType and Seq are required.
type OverrideOptions struct {
	WorkerType string
	// Seq is the record that is to be overridden, as its operator has seen it: the newest
	// that workers go by, see [OverridePlan].
	Seq int64
	// InstanceID labels the operator in the record and in logs: at most 256 bytes. Default:
	// as in Options.
	InstanceID string
	// Reason is for people, in the Metadata of the record: at most store.MaxMetadata bytes.
	Reason string
	// DoneUntil says up to when slots are done from then on, in store time, at most 366 days
	// ahead. Workers run no job of such a slot. A time in the past opens later slots again.
	// Default: the latest that the records say, unless that is more than a slot and a day
	// ahead.
	DoneUntil time.Time
}

// OverridePlan is what an override would end, and the record that it would be.
type OverridePlan struct {
	// Head is the record that workers go by. HeadDefect is why they can't obey it, nil if
	// they do.
	Head       store.Record
	HeadDefect error
	// Terms have the newest record of each term that may not be over, newest first, and those
	// of poison last: its holder may work up to WindowEnd, and does so beside another after an
	// override. Those below LastOverride, the newest override that workers obey (0: there is none), have been
	// ended already, which their holders may not have noticed.
	Terms        []store.Record
	LastOverride int64
	// Unreachable are the records above a free key, newest first: workers don't follow them.
	Unreachable []store.Record
	// Record is the override, as of now.
	Record store.Record
	// Next is the record that workers go by then, and NextDefect why they can't obey it, nil
	// if they do. It is Record, unless that takes the free key below Unreachable.
	Next       store.Record
	NextDefect error
}

// Override appends a record that ends whatever is in force in the ledger of a worker type,
// and returns it: a window, what is said to be done far ahead, or poison. From its
// WindowStart on, slots are free, also what is left of the slot that was overridden, and
// workers claim them when they look next: at the latest for their next slot. Workers run no
// job of a slot before its DoneUntil. It is for operators, and for records that leave nothing
// to claim for long (see event.Blocked): no worker overrides anything.
//
// It breaks the promise that one holder works at a time. A holder that lives works on until
// it reads the override: when it extends its lease, or shortly before its next slot, and at
// the latest until its window ends. PlanOverride shows which holders that may be. The tokens
// of those whose records can be obeyed are lower than those of all leases after the override,
// so a resource that refuses lower tokens is safe from them. Poison has any token, and so
// has a holder that works by it.
//
// An override that takes a free key lets workers go on to what stands above it: see
// OverridePlan.Next.
//
// An error wraps ErrOptions, ErrHeadMoved, ErrTimeUnknown, ErrLedgerFull or what the store
// answered: then nothing was written. Or it wraps ErrOverrideUnknown. After a reply that
// leaves the outcome open, Override reads the key back, for 10 s at most even if ctx has
// ended. It may be repeated: at most one record is stored after Seq.
func (d Desk) Override(ctx context.Context, o OverrideOptions) (store.Record, error) {
	s, p, err := d.override(ctx, o)
	if err == nil {
		err = s.appendOverride(ctx, p.Record, p.Head)
		if err == nil {
			return p.Record, nil
		}
		err = fmt.Errorf("override %q: %w", o.WorkerType, err)
	}
	return store.Record{}, err
}

// PlanOverride shows what Override would do with the same options, and writes nothing. Errors
// are those of Override. With ErrHeadMoved, Head and HeadDefect are those of the plan, too.
func (d Desk) PlanOverride(ctx context.Context, o OverrideOptions) (OverridePlan, error) {
	_, p, err := d.override(ctx, o)
	return p, err
}

func (d Desk) override(ctx context.Context, o OverrideOptions) (*session, OverridePlan, error) {
	var errs option.Errors
	if o.Seq < 1 || o.Seq > store.MaxSeq {
		errs.Is("Seq", o.Seq, "must be the number of the newest record, 1 … %d", int64(store.MaxSeq))
	}
	errs.Text("InstanceID", o.InstanceID, store.MaxOrderText)
	errs.Text("Reason", o.Reason, store.MaxMetadata)
	s, err := d.begin("override", o.WorkerType, errs)
	if err != nil {
		return nil, OverridePlan{}, err
	}
	p, err := s.planOverride(ctx, o)
	if err != nil {
		return nil, p, fmt.Errorf("override %q: %w", o.WorkerType, err)
	}
	return s, p, nil
}

func (s *session) planOverride(ctx context.Context, o OverrideOptions) (OverridePlan, error) {
	now, err := s.sample(ctx)
	if err != nil {
		return OverridePlan{}, err
	}
	if most := now.Latest.Add(machine.Standard.Longest); o.DoneUntil.After(most) {
		var errs option.Errors
		errs.Is("DoneUntil", store.Format(o.DoneUntil), "must be at most 366 days ahead: %s", store.Format(most))
		return OverridePlan{}, fmt.Errorf("%w: %w", workerlease.ErrOptions, errs.Join())
	}
	below, now, err := s.look(ctx, o.WorkerType)
	if err != nil {
		return OverridePlan{}, err
	}
	p := OverridePlan{Head: below.Head, HeadDefect: below.Why}
	switch {
	case below.Head.Seq == 0:
		return p, fmt.Errorf("%w: there is no record that workers go by", ErrHeadMoved)
	case below.Head.Seq != o.Seq:
		return p, fmt.Errorf("%w: workers go by record %d, not %d", ErrHeadMoved, below.Head.Seq, o.Seq)
	case o.Seq >= store.MaxSeq-1:
		return OverridePlan{}, fmt.Errorf("%w: no number is left above record %d: use another worker type", ErrLedgerFull, o.Seq)
	}
	r, err := s.writer(o.WorkerType, cmp.Or(o.InstanceID, self.Label()))
	if err != nil {
		return OverridePlan{}, err
	}
	r.DoneUntil, r.Metadata = o.DoneUntil, o.Reason
	if r, err = below.Override(r, machine.ReadAt(now), now); err != nil {
		return OverridePlan{}, err
	}
	p.Terms, p.LastOverride, p.Unreachable, p.Record = below.Terms, below.LastOverride, below.Unreachable, r
	p.Next, p.NextDefect = below.After(r, now)
	return p, nil
}

// appendOverride appends an override above the record that it is for. If the reply leaves its outcome open, it reads the key
// back, and says in the error what stands there.
func (s *session) appendOverride(ctx context.Context, r, prev store.Record) error {
	if store.CheckAfter(r, prev) != nil {
		prev = store.Record{} // It can't be obeyed, and not be compared.
	}
	err := s.append(ctx, r, prev)
	if err == nil || errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrNotStored) {
		return err
	}
	limited, cancel := s.Clock.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	switch stored, readErr := s.Ledger.Get(limited, r.WorkerType, r.Seq); {
	case readErr == nil && stored.Claim == r.Claim && stored.Kind == r.Kind:
		return nil
	case readErr == nil:
		return fmt.Errorf("%w: record %d was appended meanwhile", ErrHeadMoved, r.Seq)
	case errors.Is(err, store.ErrDenied):
		return err // It won't come yet.
	case errors.Is(readErr, store.ErrNotFound):
		return fmt.Errorf("%w: record %d is not there, and may come yet: look again before you repeat it: %w", ErrOverrideUnknown, r.Seq, err)
	default:
		return fmt.Errorf("%w: record %d can't be read back: %w; %w", ErrOverrideUnknown, r.Seq, err, readErr)
	}
}
