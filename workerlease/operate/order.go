package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/option"
	"github.com/slotlease/slotlease/workerlease/internal/self"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// tries is how often an order is made for another head, because others append, and sends how often
// the same record is sent again.
const tries, sends = 8, 3

// Order is what an operator wants of the workers of a type. WorkerType and Kind are required; so is Until or For, but for a
// release.
type Order struct {
	WorkerType string
	// Kind is one of these. Once the order is written, no claim lands that is decided without it: claims and orders are
	// appended to one ledger, and each is made for the record right before it.
	//
	// OrderPause: no worker claims a slot, or the rest of one, as long as store time may be before the end of the order. It
	// may be given before any worker has started. A slot that has been won goes on to its end, and doesn't go on into the
	// next one.
	//
	// OrderDrain: so for the workers of one host. Others have the slots.
	//
	// OrderPrefer: one worker goes first. It has priority 0, and is first among equals; all others come one priority later. If
	// it lives, it holds the lease from the second boundary on, and mostly from the next. If not, nothing is lost.
	//
	// OrderRelease: the holder of a term gives it up when it reads that. Its context ends with ErrAskedToRelease, and the
	// rest of its slot is released once its code has returned: unlike an override, this breaks no promise. Others come first
	// in what is left of the slot. The order ends with the slot, or after an hour.
	//
	// OrderTrigger: a job (workerlease.Options.Job) is run once more, beside its slots, on one machine and under the lease. It begins when the
	// work of the current slot is done, and no other run goes on: within a second with FailoverWithin and a store that hints, else
	// when a worker looks next. It is tried again like any slot's work if it fails, or its worker dies, up to
	// MaxAttempts and the end of the order (by default an hour, 10 s to 24 h). What is done of the slots stays as it was: a slot that begins meanwhile
	// is run after it, as late as that takes. Triggers add up: each is run.
	Kind store.OrderKind
	// Target is the InstanceID of the worker to prefer, which is required; the host to drain, by default this one; the claim
	// of the term to release, by default the one in force. A pause that has one is that of a move, as store.PauseOfMove
	// writes it.
	Target string
	// Until is the store time up to which the order is in force, and For the same from now on: set
	// one of them, to at most 366 days.
	Until time.Time
	For   time.Duration
	// Now lets the holder stop when it reads a pause or a drain, and not only at the end of its slot: its context ends with
	// ErrPaused or ErrDrained, and the rest is released once its code has returned. Where another worker is preferred, a
	// holder with FailoverWithin makes room within its slot, once.
	Now bool
	// IfIdle lets a trigger be given only if no run may be in progress: else the error wraps ErrBusy.
	IfIdle bool
	// InstanceID labels the operator in the order: at most 256 bytes, in one line. Default: as
	// in workerlease.Options.
	InstanceID string
	// Reason is for people: at most 256 bytes, in one line.
	Reason string
	// RiskTwoHolders lets End end the pause of a move between stores, too. Workers here claim then, whatever those on the
	// other store do: two may work at once. A move from this store that is under way is given up without it.
	RiskTwoHolders bool
	// If, unless nil, is asked with the record right below that of the order, the zero Record in an empty ledger. Its
	// error is returned, and then nothing was written. It is asked again if others append meanwhile.
	If func(below store.Record) error
}

// names say what an order of a kind does.
var names = map[store.OrderKind]string{
	store.OrderPause: "pause", store.OrderPrefer: "prefer", store.OrderDrain: "drain", store.OrderRelease: "ask for the release of",
	store.OrderTrigger: "trigger",
}

// Give appends an order, and returns the record. A worker reads it at its turn for the next slot and, with FailoverWithin,
// when it extends its lease. Workers of versions before orders don't obey them: upgrade those first.
//
// An error wraps ErrOptions, ErrTimeUnknown, ErrHeadMoved (others have appended 8 times
// meanwhile), ErrUnfitHead, ErrNoTerm, ErrTooManyOrders, ErrPausedByMove, ErrLedgerFull or what the store answered: then
// nothing was written. Or it wraps ErrOrderUnknown. After a reply that leaves the outcome open, the
// key is read back, for 10 s at most even if ctx has ended. It may be repeated: the newest order
// of a kind takes the place of those before it.
func (d Desk) Give(ctx context.Context, o Order) (store.Record, error) {
	if o.Kind == store.OrderDrain {
		o.Target = cmp.Or(o.Target, self.Host())
	}
	return d.order(ctx, names[o.Kind], o, false)
}

// End appends the end of the orders of a kind, OrderPause by default, and returns the record: of those about Target, or of all
// if that is empty. Workers that a pause or a drain keeps from their slot claim what is left of it. They hear of the end, as of
// a shorter order in place of a longer one, within FailoverWithin, at most a minute, or within a minute without it; at once
// with FailoverWithin and a store that hints (see store.Watcher). Errors are those of Give.
func (d Desk) End(ctx context.Context, o Order) (store.Record, error) {
	o.Kind, o.Until, o.For, o.Now = cmp.Or(o.Kind, store.OrderPause), time.Time{}, 0, false
	return d.order(ctx, "resume", o, true)
}

// check returns one error for each wrong option.
func (o *Order) check(ends bool) (errs option.Errors) {
	if names[o.Kind] == "" {
		errs.Is("Kind", fmt.Sprintf("%.40q", o.Kind), "must be pause, prefer, drain, release or trigger")
	}
	if o.Kind == store.OrderTrigger && !ends {
		o.checkTrigger(&errs)
	}
	if lasts := o.Kind != store.OrderRelease && !ends; lasts {
		switch most := machine.Standard.Longest; {
		case !o.Until.IsZero() && o.For != 0:
			errs.Is("Until", store.Format(o.Until), "is set, and For is, too: set one of them")
		case o.Until.IsZero() && o.For == 0:
			errs.Missing("Until", "set it, or For: an order ends by itself")
		case o.For < 0 || o.For > most:
			errs.Is("For", o.For, "must be positive, and at most 366 days")
		}
	}
	if o.Kind == store.OrderPrefer && !ends && o.Target == "" {
		errs.Missing("Target", "it is required")
	}
	if o.IfIdle && (o.Kind != store.OrderTrigger || ends) {
		errs.Add(option.Error{Field: "IfIdle", Found: "is set", Rule: "it goes with OrderTrigger only"})
	}
	line := func(field, text string) {
		errs.Text(field, text, store.MaxOrderText)
		if strings.ContainsFunc(text, unicode.IsControl) {
			errs.Is(field, fmt.Sprintf("%.40q", text), "must have no control characters: it is shown in one line")
		}
	}
	line("Target", o.Target)
	line("InstanceID", o.InstanceID)
	line("Reason", o.Reason)
	return errs
}

// The bounds of the time in which a run that was asked for may begin, and its default.
const leastTrigger, mostTrigger, defaultTrigger = 10 * time.Second, 24 * time.Hour, time.Hour

// checkTrigger fills in the default of how long a trigger lasts, and checks what has no meaning for one.
func (o *Order) checkTrigger(errs *option.Errors) {
	if o.Until.IsZero() && o.For == 0 {
		o.For = defaultTrigger
	}
	if o.For != 0 && (o.For < leastTrigger || o.For > mostTrigger) {
		errs.Is("For", o.For, "must be 0 (%v), or %v to %v: the time in which the run may begin", defaultTrigger, leastTrigger, mostTrigger)
	}
	if o.Target != "" {
		errs.Is("Target", fmt.Sprintf("%.40q", o.Target), "must be empty: a trigger is for all workers of the type")
	}
	if o.Now {
		errs.Add(option.Error{Field: "Now", Found: "is set", Rule: "a trigger disturbs no run: ask for its release first"})
	}
}

// order gives an order, or ends some: it appends a record right after the one that workers go by.
func (d Desk) order(ctx context.Context, what string, o Order, ends bool) (store.Record, error) {
	s, err := d.begin(cmp.Or(what, "order"), o.WorkerType, o.check(ends))
	if err != nil {
		return store.Record{}, err
	}
	o.InstanceID = cmp.Or(o.InstanceID, self.Label())
	_, err = s.sample(ctx)
	for try := 1; err == nil; try++ {
		var r, prev store.Record
		if r, prev, err = s.plan(ctx, o, ends); err != nil {
			break
		}
		if err = s.appendOrder(ctx, r, prev); err == nil {
			return r, nil
		}
		if !errors.Is(err, ErrHeadMoved) && !errors.Is(err, store.ErrWentBack) || try == tries || ctx.Err() != nil {
			break
		}
		err = nil
	}
	return store.Record{}, fmt.Errorf("%s %q: %w", what, o.WorkerType, err)
}

// plan makes the record of an order, and returns the one that workers go by now, too, above which it goes.
func (s *session) plan(ctx context.Context, given Order, ends bool) (r, prev store.Record, err error) {
	below, now, err := s.look(ctx, given.WorkerType)
	switch {
	case err != nil:
		return store.Record{}, store.Record{}, err
	case below.Why != nil:
		return store.Record{}, store.Record{}, fmt.Errorf("%w, seq %d: %w", ErrUnfitHead, below.Head.Seq, below.Why)
	case below.Head.Seq >= store.MaxSeq-1:
		return store.Record{}, store.Record{}, fmt.Errorf("%w: no number is left above record %d: use another worker type", ErrLedgerFull, below.Head.Seq)
	}
	if h, until, err := below.Term("", now); given.IfIdle && err == nil && (h.Triggered() || !machine.IsDoneIn(h, slots.Slot{Start: h.SlotStart, End: h.SlotEnd})) {
		return store.Record{}, store.Record{}, fmt.Errorf("%w: %s has the lease by record %d, up to %s", ErrBusy, h.InstanceID, h.Seq, store.Format(until))
	}
	if err := given.follows(below.Head, ends, now); err != nil {
		return store.Record{}, store.Record{}, err
	}
	o := store.Order{
		Kind: given.Kind, Target: given.Target, Now: given.Now || given.Kind == store.OrderRelease && !ends, Why: given.Reason, By: given.InstanceID,
		At: now.Earliest.UTC().Truncate(time.Millisecond),
	}
	switch {
	case ends:
		o.Until = o.At
	case o.Kind == store.OrderRelease:
		head, until, err := below.Term(o.Target, now)
		if err != nil {
			return store.Record{}, store.Record{}, fmt.Errorf("%w: %w", ErrNoTerm, err)
		}
		o.Target, o.Until = head.Claim, until
	default:
		if o.Until, err = given.until(now); err != nil {
			return store.Record{}, store.Record{}, err
		}
		if lasts := o.Until.Sub(o.At); o.Kind == store.OrderTrigger && (lasts < leastTrigger || lasts > mostTrigger+time.Minute) {
			return store.Record{}, store.Record{}, fmt.Errorf("%w: Until %s: must be %v to %v ahead of store time", workerlease.ErrOptions, store.Format(o.Until), leastTrigger, mostTrigger)
		}
	}
	r, err = s.writer(given.WorkerType, o.By)
	if err != nil {
		return store.Record{}, store.Record{}, err
	}
	r, err = below.Order(o, r, machine.ReadAt(now), now)
	if errors.Is(err, store.ErrInvalid) {
		return store.Record{}, store.Record{}, fmt.Errorf("%w: %w", ErrTooManyOrders, err)
	}
	return r, below.Head, cmp.Or(err, leavesRoom(o, r))
}

// leavesRoom keeps triggers, which programs may give, from taking the room of a pause, with which an operator stops them.
func leavesRoom(given store.Order, r store.Record) error {
	const most, roomy = store.MaxOrderCount / 2, store.MaxOrders / 2
	if given.Kind != store.OrderTrigger || !given.Until.After(given.At) {
		return nil // It ends one.
	}
	orders, err := store.ParseOrders(r.Orders)
	n := 0
	for _, o := range orders {
		if o.Kind == store.OrderTrigger {
			n++
		}
	}
	if err == nil && (n > most || n > 1 && len(r.Orders) > roomy) {
		err = fmt.Errorf("%w: %d runs that were asked for would wait: at most %d may, in %d bytes with all other orders, so that a pause fits", ErrTooManyOrders, n, most, roomy)
	}
	return err
}

// until is the end of the order, in whole milliseconds.
func (o *Order) until(now timeline.Interval) (time.Time, error) {
	until := o.Until
	if until.IsZero() {
		until = now.Latest.Add(o.For)
	}
	until = until.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond)
	var errs option.Errors
	if most := now.Latest.Add(machine.Standard.Longest + time.Millisecond); until.After(most) {
		errs.Is("Until", store.Format(until), "must be at most 366 days ahead: %s", store.Format(most))
	} else if !until.After(now.Latest) {
		errs.Is("Until", store.Format(until), "must be ahead of store time: %s", store.Format(now.Latest))
	}
	if err := errs.Join(); err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", workerlease.ErrOptions, err)
	}
	return until, nil
}

// follows returns why the order may not be appended to a record.
func (o *Order) follows(head store.Record, ends bool, now timeline.Interval) error {
	ofMove := ends && o.RiskTwoHolders || !ends && o.Target != ""
	for _, old := range head.OrdersAt(now.Earliest) {
		role, _ := old.Move()
		if o.Kind == store.OrderPause && !ofMove && (role == store.MoveLeft || role == store.MoveArriving) {
			return fmt.Errorf("%w: %s", ErrPausedByMove, old)
		}
	}
	if o.If == nil {
		return nil
	}
	return o.If(head)
}

// appendOrder appends the record of an order above another one. If the reply leaves its outcome open, it reads the key
// back, and sends the same record again if it isn't there: it can be stored only once.
func (s *session) appendOrder(ctx context.Context, r, prev store.Record) error {
	limited, cancel := s.Clock.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for send := 1; ; send++ {
		err := s.append(ctx, r, prev)
		if err == nil || send == 1 && (errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrNotStored)) {
			return err
		}
		switch stored, readErr := s.Ledger.Get(limited, r.WorkerType, r.Seq); {
		case readErr == nil && sameOrder(stored, r):
			return nil
		case readErr == nil:
			return fmt.Errorf("%w: record %d was appended meanwhile", ErrHeadMoved, r.Seq)
		case send == 1 && errors.Is(err, store.ErrDenied):
			return err // It won't come yet.
		case errors.Is(readErr, store.ErrNotFound) && send < sends && ctx.Err() == nil:
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
