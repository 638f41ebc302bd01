package workerlease

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

var (
	// ErrOrderUnknown is wrapped by the error of an order if it is not known whether it is
	// stored. It may be stored later, too, unless another record is by then.
	ErrOrderUnknown = errors.New("it is not known whether the order is stored")
	// ErrUnfitHead is wrapped by the error of an order if workers can't obey the newest record:
	// they supersede it, or an override does. Nothing was written.
	ErrUnfitHead = errors.New("workers can't obey the newest record")
	// ErrTooManyOrders is wrapped by the error of an order that doesn't fit beside those in force:
	// at most 8, in 2 KiB. Nothing was written.
	ErrTooManyOrders = errors.New("there are too many orders")
	// ErrNoTerm is wrapped by the error of AskRelease if nothing can be released: nobody holds the
	// lease, it isn't the claim that was named, or a group holds it. Nothing was written.
	ErrNoTerm = errors.New("there is no term to release")
)

// orderTries is how often an order is made for another head, because others append, and how often
// the same record is sent again.
const orderTries, orderSends = 8, 3

// PauseOptions of Pause. WorkerType, and Until or For, are required.
type PauseOptions struct {
	WorkerType string
	// Until is the store time up to which nobody claims, and For the same from now on: set
	// one of them, to at most 366 days.
	Until time.Time
	For   time.Duration
	// Now lets the holder stop when it reads the order, and not only at the end of its slot.
	Now bool
	// InstanceID labels the operator in the order: at most 256 bytes, in one line. Default: as
	// in Options.
	InstanceID string
	// Reason is for people: at most 256 bytes, in one line.
	Reason string
}

// ResumeOptions of Resume. WorkerType is required.
type ResumeOptions struct {
	WorkerType string
	// Kind is the kind of the order that is to end. Default: store.OrderPause. Target is whom it
	// is about. Default: all orders of the kind.
	Kind   store.OrderKind
	Target string
	// InstanceID and Reason are as in PauseOptions.
	InstanceID, Reason string
}

// PreferOptions of Prefer. WorkerType, Target, and Until or For, are required.
type PreferOptions struct {
	WorkerType string
	// Target is the InstanceID of the worker that goes first.
	Target string
	// Until and For are as in PauseOptions: up to when it does.
	Until time.Time
	For   time.Duration
	// Now lets a holder with FailoverWithin that isn't the preferred worker make room within its
	// slot, once.
	Now bool
	// InstanceID and Reason are as in PauseOptions.
	InstanceID, Reason string
}

// ReleaseOptions of AskRelease. WorkerType is required.
type ReleaseOptions struct {
	WorkerType string
	// Claim is the claim of the term that is to be released. Default: the one in force.
	Claim string
	// InstanceID and Reason are as in PauseOptions.
	InstanceID, Reason string
}

// DrainOptions of Drain. WorkerType, and Until or For, are required.
type DrainOptions struct {
	WorkerType string
	// Host is the host whose workers claim nothing. Default: this one.
	Host string
	// Until, For and Now are as in PauseOptions.
	Until time.Time
	For   time.Duration
	Now   bool
	// InstanceID and Reason are as in PauseOptions.
	InstanceID, Reason string
}

// Pause pauses a worker type on its own client: see Client.Pause.
func Pause(ctx context.Context, ledger store.Ledger, o PauseOptions) (store.Record, error) {
	return newDefaultClient(ledger).Pause(ctx, o)
}

// Resume ends an order on its own client: see Client.Resume.
func Resume(ctx context.Context, ledger store.Ledger, o ResumeOptions) (store.Record, error) {
	return newDefaultClient(ledger).Resume(ctx, o)
}

// Prefer lets a worker go first, on its own client: see Client.Prefer.
func Prefer(ctx context.Context, ledger store.Ledger, o PreferOptions) (store.Record, error) {
	return newDefaultClient(ledger).Prefer(ctx, o)
}

// AskRelease asks the holder to release its lease, on its own client: see Client.AskRelease.
func AskRelease(ctx context.Context, ledger store.Ledger, o ReleaseOptions) (store.Record, error) {
	return newDefaultClient(ledger).AskRelease(ctx, o)
}

// Drain drains a host on its own client: see Client.Drain.
func Drain(ctx context.Context, ledger store.Ledger, o DrainOptions) (store.Record, error) {
	return newDefaultClient(ledger).Drain(ctx, o)
}

// Pause appends an order by which no worker claims a slot, or the rest of one, as long as store
// time may be before its end, and returns the record. It works before any worker has started, too.
//
// Once it has returned, no claim lands that is decided by this version of the engine: claims and
// orders are appended to one ledger, and each is made for the record right before it. A slot that
// has been won goes on to its end, and its extensions within it; it doesn't go on into the next
// slot. With Now the holder's context ends with ErrPaused when it reads the order, and the rest is
// released once its code has returned.
//
// A worker reads the order at its turn for the next slot and, with FailoverWithin, when it extends
// its lease. Nothing polls. Workers of versions before orders don't obey them: upgrade those first.
//
// An error wraps ErrOptions, ErrTimeUnknown, ErrHeadMoved (others have appended 8 times
// meanwhile), ErrUnfitHead, ErrTooManyOrders, ErrLedgerFull or what the store answered: then
// nothing was written. Or it wraps ErrOrderUnknown. After a reply that leaves the outcome open, the
// key is read back, for 10 s at most even if ctx has ended. It may be repeated: the newest order
// of a kind takes the place of those before it.
func (c *Client) Pause(ctx context.Context, o PauseOptions) (store.Record, error) {
	d := draft{what: "pause", workerType: o.WorkerType, until: o.Until, length: o.For, by: o.InstanceID}
	d.order = store.Order{Kind: store.OrderPause, Now: o.Now, Why: o.Reason}
	return c.order(ctx, d)
}

// Resume appends the end of an order, of a pause unless Kind says otherwise, and returns the
// record. Workers claim when they look next: at their turn for the next slot. Errors are those of
// Pause.
func (c *Client) Resume(ctx context.Context, o ResumeOptions) (store.Record, error) {
	d := draft{what: "resume", workerType: o.WorkerType, by: o.InstanceID, ends: true}
	d.order = store.Order{Kind: cmp.Or(o.Kind, store.OrderPause), Target: o.Target, Why: o.Reason}
	return c.order(ctx, d)
}

// Prefer appends an order by which one worker goes first, up to a time, and returns the record.
// The preferred worker has priority 0, and is first among equals; all others come one priority
// later. A worker that reads the order only at its turn comes after all turns of that slot. So a
// preferred worker that lives holds the lease from the second boundary on, and mostly from the
// next. A lease that goes on from slot to slot doesn't go on before the preferred worker has had
// its turn. If that is dead, another worker has the slot by its boundary: nothing is lost.
//
// With Now, a holder with FailoverWithin that isn't the preferred worker steps down when it reads
// the order, with the cause ErrAskedToRelease, and its rest is claimed in the new order. It does so
// once. Errors are those of Pause.
func (c *Client) Prefer(ctx context.Context, o PreferOptions) (store.Record, error) {
	d := draft{what: "prefer", workerType: o.WorkerType, until: o.Until, length: o.For, by: o.InstanceID, target: "Target"}
	d.order = store.Order{Kind: store.OrderPrefer, Target: o.Target, Now: o.Now, Why: o.Reason}
	return c.order(ctx, d)
}

// AskRelease appends an order by which the holder of a term gives it up when it reads that, and
// returns the record. Its context ends with the cause ErrAskedToRelease, and the rest of its slot
// is released once its code has returned: unlike Override, this breaks no promise. No other term is
// touched. Others come first in what is left of the slot.
//
// The order ends with the slot, or after an hour. A holder without FailoverWithin reads it at its
// turn for the next slot only: then little is left to release. Errors are those of Pause, and
// ErrNoTerm.
func (c *Client) AskRelease(ctx context.Context, o ReleaseOptions) (store.Record, error) {
	d := draft{what: "ask for the release of", workerType: o.WorkerType, by: o.InstanceID}
	d.order = store.Order{Kind: store.OrderRelease, Target: o.Claim, Now: true, Why: o.Reason}
	return c.order(ctx, d)
}

// Drain appends an order by which no worker on a host claims a slot of the worker type, or the
// rest of one, up to a time, and returns the record. A holder there stops at the end of its slot
// or, with Now, when it reads the order. Workers elsewhere have the slots. Errors are those of
// Pause.
func (c *Client) Drain(ctx context.Context, o DrainOptions) (store.Record, error) {
	d := draft{what: "drain", workerType: o.WorkerType, until: o.Until, length: o.For, by: o.InstanceID, target: "Host"}
	d.order = store.Order{Kind: store.OrderDrain, Target: cmp.Or(o.Host, host()), Now: o.Now, Why: o.Reason}
	return c.order(ctx, d)
}

// draft is an order that is to be given.
type draft struct {
	what, workerType, by string
	order                store.Order
	target               string // the option that has the target, if one is required
	until                time.Time
	length               time.Duration
	ends                 bool // it ends others
}

// check returns one error for each wrong option.
func (d *draft) check(c *Client) error {
	var errs optionErrors
	errs.workerType(d.workerType)
	if lasts := d.order.Kind != store.OrderRelease && !d.ends; lasts {
		switch most := machine.Standard.Longest; {
		case !d.until.IsZero() && d.length != 0:
			errs.is("Until", store.Format(d.until), "is set, and For is, too: set one of them")
		case d.until.IsZero() && d.length == 0:
			errs.missing("Until", "set it, or For: an order ends by itself")
		case d.length < 0 || d.length > most:
			errs.is("For", d.length, "must be positive, and at most 366 days")
		}
	}
	if d.target != "" && d.order.Target == "" {
		errs.missing(d.target, "it is required")
	}
	line := func(field, text string) {
		errs.text(field, text, store.MaxOrderText)
		if strings.ContainsFunc(text, unicode.IsControl) {
			errs.is(field, fmt.Sprintf("%.40q", text), "must have no control characters: it is shown in one line")
		}
	}
	line(cmp.Or(d.target, "Target"), d.order.Target)
	line("InstanceID", d.by)
	line("Reason", d.order.Why)
	if c.ledger == nil {
		errs.missing("ledger", "open one with store/mongo, store/cosmos, store/sqlite or store/memory")
	}
	return errs.join()
}

// order gives an order: it appends a record right after the one that workers go by.
func (c *Client) order(ctx context.Context, d draft) (store.Record, error) {
	if err := d.check(c); err != nil {
		return store.Record{}, fmt.Errorf("%s %.70q: %w: %w", d.what, d.workerType, ErrOptions, err)
	}
	d.order.By = cmp.Or(d.by, defaultInstanceID())
	_, err := c.sampleAnew(ctx)
	for try := 0; err == nil; try++ {
		var r store.Record
		if r, err = c.planOrder(ctx, d); err != nil {
			break
		}
		if err = c.appendOrder(ctx, r); err == nil {
			return r, nil
		}
		if !errors.Is(err, ErrHeadMoved) || try+1 == orderTries || ctx.Err() != nil {
			break
		}
		err = nil
	}
	return store.Record{}, fmt.Errorf("%s %q: %w", d.what, d.workerType, err)
}

// planOrder makes the record of an order for the record that workers go by now.
func (c *Client) planOrder(ctx context.Context, d draft) (store.Record, error) {
	below, now, err := c.lookBelow(ctx, d.workerType)
	switch {
	case err != nil:
		return store.Record{}, err
	case below.Why != nil:
		return store.Record{}, fmt.Errorf("%w, seq %d: %w", ErrUnfitHead, below.Head.Seq, below.Why)
	case below.Head.Seq >= store.MaxSeq-1:
		return store.Record{}, fmt.Errorf("%w: no number is left above record %d: use another worker type", ErrLedgerFull, below.Head.Seq)
	}
	o := d.order
	o.At = now.Earliest.UTC().Truncate(time.Millisecond)
	switch {
	case d.ends:
		o.Until = o.At
	case o.Kind == store.OrderRelease:
		head, until, err := below.Term(now)
		if err == nil && o.Target != "" && o.Target != head.Claim {
			err = fmt.Errorf("claim %.64q is not that in record %d", o.Target, head.Seq)
		}
		if err != nil {
			return store.Record{}, fmt.Errorf("%w: %w", ErrNoTerm, err)
		}
		o.Target, o.Until = head.Claim, until
	default:
		if o.Until = d.until; o.Until.IsZero() {
			o.Until = now.Latest.Add(d.length)
		}
		o.Until = o.Until.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond)
		var errs optionErrors
		if most := now.Latest.Add(machine.Standard.Longest + time.Millisecond); o.Until.After(most) {
			errs.is("Until", store.Format(o.Until), "must be at most 366 days ahead: %s", store.Format(most))
		} else if !o.Until.After(now.Latest) {
			errs.is("Until", store.Format(o.Until), "must be ahead of store time: %s", store.Format(now.Latest))
		}
		if err := errs.join(); err != nil {
			return store.Record{}, fmt.Errorf("%w: %w", ErrOptions, err)
		}
	}
	var id [16]byte
	if _, err := io.ReadFull(c.rand, id[:]); err != nil {
		return store.Record{}, fmt.Errorf("ClientOptions.Rand fails: %w", err)
	}
	r, err := below.Order(o, store.Record{
		WorkerType: d.workerType, InstanceID: o.By, Claim: hex.EncodeToString(id[:]),
		Worker: store.Worker{Host: host(), PID: os.Getpid(), Version: Version()},
	}, machine.ReadAt(now), now)
	if errors.Is(err, store.ErrInvalid) {
		return store.Record{}, fmt.Errorf("%w: %w", ErrTooManyOrders, err)
	}
	return r, err
}

// lookBelow reads the newest records, and as many as are needed to know which one workers go by.
func (c *Client) lookBelow(ctx context.Context, workerType string) (below machine.Below, now timeline.Interval, err error) {
	for limit, enough := 64, false; !enough; limit *= 8 {
		records, _, err := c.ledger.Tail(ctx, workerType, limit)
		if err != nil {
			return machine.Below{}, now, err
		}
		now = c.known()
		below, enough = machine.LookBelow(records, limit, now)
	}
	return below, now, nil
}

// appendOrder appends the record of an order. If the reply leaves its outcome open, it reads the key
// back, and sends the same record again if it isn't there: it can be stored only once.
func (c *Client) appendOrder(ctx context.Context, r store.Record) error {
	limited, cancel := c.clock.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	for send := 1; ; send++ {
		err := c.ledger.Append(ctx, r)
		if err == nil || send == 1 && (errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrNotStored)) {
			return err
		}
		switch stored, readErr := c.ledger.Get(limited, r.WorkerType, r.Seq); {
		case readErr == nil && sameOrder(stored, r):
			return nil
		case readErr == nil:
			return fmt.Errorf("%w: record %d was appended meanwhile", ErrHeadMoved, r.Seq)
		case send == 1 && errors.Is(err, store.ErrDenied):
			return err // It won't come yet.
		case errors.Is(readErr, store.ErrNotFound) && send < orderSends && ctx.Err() == nil:
		case errors.Is(readErr, store.ErrNotFound):
			return fmt.Errorf("%w: record %d is not there, and may come yet: look again before you repeat it: %w", ErrOrderUnknown, r.Seq, err)
		default:
			return fmt.Errorf("%w: record %d can't be read back: %w; %w", ErrOrderUnknown, r.Seq, err, readErr)
		}
	}
}

// sameOrder reports that a record is the one that was sent. Its claim is that of the term.
func sameOrder(stored, sent store.Record) bool {
	return stored.Kind == sent.Kind && stored.Claim == sent.Claim && stored.Metadata == sent.Metadata && stored.Orders == sent.Orders &&
		stored.Worker.PID == sent.Worker.PID && stored.FixedAt.Equal(sent.FixedAt) && stored.ReadAt.Equal(sent.ReadAt)
}
