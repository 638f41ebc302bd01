package workerlease

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

var (
	// ErrHeadMoved is wrapped by the error of Override and PlanOverride if workers go by
	// another record than OverrideOptions.Seq. Nothing was written.
	ErrHeadMoved = errors.New("the newest record is another")
	// ErrLedgerFull is wrapped by the error of Override and PlanOverride if no number is left
	// for the override: the worker type can't be used any more. Nothing was written.
	ErrLedgerFull = errors.New("the ledger is full")
	// ErrOverrideUnknown is wrapped by the error of Override if it is not known whether the
	// override is stored. It may be stored later, too, unless another record is by then.
	ErrOverrideUnknown = errors.New("it is not known whether the override is stored")
	// ErrTimeUnknown is wrapped by the error of Override and PlanOverride if the store's
	// answers don't show its time well enough. Nothing was written.
	ErrTimeUnknown = errors.New("store time is not known well enough")
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

// Override ends what is in force on its own client: see Client.Override.
func Override(ctx context.Context, ledger store.Ledger, o OverrideOptions) (store.Record, error) {
	return newDefaultClient(ledger).Override(ctx, o)
}

// PlanOverride is Client.PlanOverride on its own client.
func PlanOverride(ctx context.Context, ledger store.Ledger, o OverrideOptions) (OverridePlan, error) {
	return newDefaultClient(ledger).PlanOverride(ctx, o)
}

// Override appends a record that ends whatever is in force in the ledger of a worker type,
// and returns it: a window, what is said to be done far ahead, or poison. From its
// WindowStart on, slots are free, also what is left of the slot that was overridden, and
// workers claim them when they look next: at the latest for their next slot. Workers run no
// job of a slot before its DoneUntil. It is for operators, and for records that leave nothing
// to claim for long (see [Blocked]): no worker overrides anything.
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
func (c *Client) Override(ctx context.Context, o OverrideOptions) (store.Record, error) {
	p, err := c.PlanOverride(ctx, o)
	if err != nil {
		return store.Record{}, err
	}
	if err := c.appendOverride(ctx, p.Record); err != nil {
		return store.Record{}, fmt.Errorf("override %q: %w", o.WorkerType, err)
	}
	return p.Record, nil
}

// PlanOverride shows what Override would do with the same options, and writes nothing. Errors
// are those of Override. With ErrHeadMoved, Head and HeadDefect are those of the plan, too.
func (c *Client) PlanOverride(ctx context.Context, o OverrideOptions) (OverridePlan, error) {
	if err := c.checkOverride(o); err != nil {
		return OverridePlan{}, fmt.Errorf("override %.70q: %w: %w", o.WorkerType, ErrOptions, err)
	}
	p, err := c.planOverride(ctx, o)
	if err != nil {
		return p, fmt.Errorf("override %q: %w", o.WorkerType, err)
	}
	return p, nil
}

func (c *Client) checkOverride(o OverrideOptions) error {
	var errs optionErrors
	errs.workerType(o.WorkerType)
	if o.Seq < 1 || o.Seq > store.MaxSeq {
		errs.is("Seq", o.Seq, "must be the number of the newest record, 1 … %d", int64(store.MaxSeq))
	}
	errs.text("InstanceID", o.InstanceID, maxLabel)
	errs.text("Reason", o.Reason, store.MaxMetadata)
	if c.ledger == nil {
		errs.missing("ledger", "open one with store/mongo, store/cosmos, store/sqlite or store/memory")
	}
	return errs.join()
}

func (c *Client) planOverride(ctx context.Context, o OverrideOptions) (OverridePlan, error) {
	now, err := c.sampleAnew(ctx)
	if err != nil {
		return OverridePlan{}, err
	}
	if most := now.Latest.Add(machine.Standard.Longest); o.DoneUntil.After(most) {
		var errs optionErrors
		errs.is("DoneUntil", store.Format(o.DoneUntil), "must be at most 366 days ahead: %s", store.Format(most))
		return OverridePlan{}, fmt.Errorf("%w: %w", ErrOptions, errs.join())
	}
	below, now, err := c.lookBelow(ctx, o.WorkerType)
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
	var id [16]byte
	if _, err := io.ReadFull(c.rand, id[:]); err != nil {
		return OverridePlan{}, fmt.Errorf("ClientOptions.Rand fails: %w", err)
	}
	r, err := below.Override(store.Record{
		WorkerType: o.WorkerType, InstanceID: cmp.Or(o.InstanceID, defaultInstanceID()), Claim: hex.EncodeToString(id[:]),
		DoneUntil: o.DoneUntil, Metadata: o.Reason, Worker: store.Worker{Host: host(), PID: os.Getpid(), Version: Version()},
	}, machine.ReadAt(now), now)
	if err != nil {
		return OverridePlan{}, err
	}
	p.Terms, p.LastOverride, p.Unreachable, p.Record = below.Terms, below.LastOverride, below.Unreachable, r
	p.Next, p.NextDefect = below.After(r, now)
	return p, nil
}

// appendOverride appends an override. If the reply leaves its outcome open, it reads the key
// back, and says in the error what stands there.
func (c *Client) appendOverride(ctx context.Context, r store.Record) error {
	err := c.ledger.Append(ctx, r)
	if err == nil || errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrNotStored) {
		return err
	}
	limited, cancel := c.clock.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	switch stored, readErr := c.ledger.Get(limited, r.WorkerType, r.Seq); {
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

// sampleAnew samples store time until more than one answer agrees, and none contradicts it.
// Answers of servers that contradict each other by little make it uncertain by as much.
func (c *Client) sampleAnew(ctx context.Context) (timeline.Interval, error) {
	for decided, n := false, 0; !decided && n < 3*timeline.Confirm; n++ {
		sent := c.local()
		stamp, err := c.ledger.Now(ctx)
		if err != nil {
			return timeline.Interval{}, err
		}
		outcome, _ := c.sample(nil, stamp, sent, c.local())
		if outcome == timeline.Rejected {
			return timeline.Interval{}, fmt.Errorf("%w: %s from %q is not plausible", ErrTimeUnknown, store.Format(stamp.Time), stamp.Server)
		}
		c.mu.Lock()
		decided = !c.line.Single() && !c.line.InQuestion()
		c.mu.Unlock()
	}
	now := c.known()
	if most := machine.Standard.Ahead / 4; now.Uncertainty() > most {
		return timeline.Interval{}, fmt.Errorf("%w: it is uncertain by %v, more than %v", ErrTimeUnknown, round(now.Uncertainty()), most)
	}
	return now, nil
}

// known contains store time now, for a reader that begins now.
func (c *Client) known() timeline.Interval {
	c.mu.Lock()
	defer c.mu.Unlock()
	local := c.local()
	return c.line.At(local, c.line.Settled(local))
}
