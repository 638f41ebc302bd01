// Package operate is for operators: they pause the workers of a type, prefer one of them, drain a host, ask for a
// release, override what is in force, and trim. No worker needs it.
package operate

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/boottime"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/option"
	"github.com/slotlease/slotlease/workerlease/internal/self"
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
	// at most 8, in 2 KiB, of which triggers leave a half to others. Nothing was written.
	ErrTooManyOrders = errors.New("there are too many orders")
	// ErrNoTerm is wrapped by the error of a release if nothing can be released: the lease
	// is free, it isn't the claim that was named, or a group holds it. Nothing was written.
	ErrNoTerm = errors.New("there is no term to release")
	// ErrBusy is wrapped by the error of Give if a run may be in progress, and Order.IfIdle is set. Nothing was written.
	ErrBusy = errors.New("a run may be in progress")
	// ErrPausedByMove is wrapped by the error of Give and End if the worker type was moved to another store, or is being
	// moved to this one, and is paused for that: workers with the other store may hold the lease. Nothing was written. See
	// Order.RiskTwoHolders.
	ErrPausedByMove = errors.New("a move between stores has paused the worker type")
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

// Desk is where operators work: at a ledger. It is safe for concurrent use.
type Desk struct {
	Ledger store.Ledger
	// Clock and Rand are as in workerlease.ClientOptions.
	Clock clock.Clock
	Rand  io.Reader
}

// On returns the desk of a ledger.
func On(ledger store.Ledger) Desk { return Desk{Ledger: ledger} }

// limit is how long the key of an order is read back after its context has ended.
const limit = 10 * time.Second

// session is one call at a desk, with what it knows of store time.
type session struct {
	Desk
	local func() time.Duration
	line  timeline.Line
}

// begin begins a session whose options are right.
func (d Desk) begin(what, workerType string, errs option.Errors) (*session, error) {
	errs.WorkerType(workerType)
	if d.Ledger == nil {
		errs.Missing("ledger", "open one with store/mongo, store/cosmos, store/sqlite or store/memory")
	}
	if err := errs.Join(); err != nil {
		return nil, fmt.Errorf("%s %.70q: %w: %w", what, workerType, workerlease.ErrOptions, err)
	}
	if d.Clock == nil {
		d.Clock = workerlease.NewSystemClock()
	}
	if d.Rand == nil {
		d.Rand = rand.Reader
	}
	s := &session{Desk: d}
	s.local, _ = self.Clock(d.Clock)
	_, s.line.Boottime = boottime.Of(d.Clock)
	return s, nil
}

// known contains store time now.
func (s *session) known() timeline.Interval {
	local := s.local()
	return s.line.At(local, s.line.Settled(local))
}

// sample samples store time until more than one answer agrees, and none contradicts it.
// Answers of servers that contradict each other by little make it uncertain by as much.
func (s *session) sample(ctx context.Context) (timeline.Interval, error) {
	for decided, n := false, 0; !decided && n < 3*timeline.Confirm; n++ {
		sent := s.local()
		stamp, err := s.Ledger.Now(ctx)
		if err != nil {
			return timeline.Interval{}, err
		}
		if s.line.Add(stamp, sent, s.local()) == timeline.Rejected {
			return timeline.Interval{}, fmt.Errorf("%w: %s from %q is not plausible", ErrTimeUnknown, store.Format(stamp.Time), stamp.Server)
		}
		decided = !s.line.Single() && !s.line.InQuestion()
	}
	now := s.known()
	if most := machine.Standard.Ahead / 4; now.Uncertainty() > most {
		return timeline.Interval{}, fmt.Errorf("%w: it is uncertain by %v, more than %v", ErrTimeUnknown, now.Uncertainty().Round(100*time.Microsecond), most)
	}
	return now, nil
}

// look reads the newest records, and as many as are needed to know which one workers go by.
func (s *session) look(ctx context.Context, workerType string) (below machine.Below, now timeline.Interval, err error) {
	for limit, enough := 64, false; !enough; limit *= 8 {
		records, _, err := s.Ledger.Tail(ctx, workerType, limit)
		if err != nil {
			return machine.Below{}, now, err
		}
		now = s.known()
		below, enough = machine.LookBelow(records, limit, now)
	}
	return below, now, nil
}

// writer returns a record that has only who writes it.
func (s *session) writer(workerType, label string) (store.Record, error) {
	var id [16]byte
	if _, err := io.ReadFull(s.Rand, id[:]); err != nil {
		return store.Record{}, fmt.Errorf("Desk.Rand fails: %w", err)
	}
	return store.Record{
		WorkerType: workerType, InstanceID: label, Claim: hex.EncodeToString(id[:]),
		Worker: store.Worker{Host: self.Host(), PID: os.Getpid(), Version: workerlease.Version()},
	}, nil
}

// append appends a record, above one if that is not the zero Record.
func (s *session) append(ctx context.Context, r, prev store.Record) error {
	if follower := store.AsFollower(s.Ledger); prev.Seq != 0 && follower != nil {
		if err := follower.AppendAfter(ctx, r, prev); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return s.Ledger.Append(ctx, r)
}
