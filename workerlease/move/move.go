package move

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

const (
	// needed is how many of the newest records are copied before anybody may claim on the second store: as many as a
	// worker looks back over if the newest can't be obeyed.
	needed = 16
	// lasts is how long the pauses last: as long as orders may.
	lasts = 366 * 24 * time.Hour
	// MostWait is longer than the slot of any schedule.
	MostWait = lasts
	// MaxApart is how far the clocks of two stores may be apart.
	MaxApart = time.Minute
	// settles is how long nothing must have been appended to the first ledger, after nobody holds the lease any
	// more: a holder may still record that its work is done.
	settles = time.Second
	// closes is the same while the slot that ended last is that of a job which isn't done: its holder may be recording
	// that it is, and tries to at short intervals for about so long.
	closes = 15 * time.Second
	// looks is how often the first ledger is read while somebody holds the lease.
	looks = 5 * time.Second
	// tries is how often an append is sent again whose outcome is unknown.
	tries = 5
)

var (
	// ErrOptions is wrapped by the error of options that can't be.
	ErrOptions = errors.New("invalid options")
	// ErrNothing: the first store has no records of the worker type.
	ErrNothing = errors.New("there is nothing to move")
	// ErrUsed: the second store has newer records of the worker type than the first, or somebody holds its lease
	// there.
	ErrUsed = errors.New("the worker type is in use on the second store")
	// ErrApart: the clocks of the stores differ by more than MaxApart, so that the windows of one mean something
	// else on the other.
	ErrApart = errors.New("the clocks of the stores are too far apart")
	// ErrPaused: an operator has paused the worker type on one of the stores, which a move would end. If it was moved
	// before, the records are copied, and it is paused on the second store by an order that was given since; it may
	// have been moved on from there.
	ErrPaused = errors.New("the worker type is paused by another order")
	// ErrOrders: an operator has given orders on the second store, such as a preference, that the first hasn't got. The
	// first one's orders would take their place.
	ErrOrders = errors.New("the worker type has other orders on the second store")
	// ErrMoved: the worker type was moved from the first store, and not to the second one; or another move from there began
	// later than this one, and takes its place.
	ErrMoved = errors.New("the worker type was moved to another store")
	// ErrLost: the second store has lost records that were copied: it was emptied, or a server took over that hadn't got them.
	ErrLost = errors.New("the second store has lost what was copied there")
	// ErrSecond: it was the second store that answered, or didn't.
	ErrSecond = errors.New("the second store")
	// ErrGivenUp: the pause on the first store was ended, or another took its place, while the move was under way. It
	// stays on the second store.
	ErrGivenUp = errors.New("the move was given up on the first store")
)

// Options of Move. WorkerType is required.
type Options struct {
	WorkerType string
	// Now asks the holder to stop when it reads the pause, in place of at the end of its slot: see operate.Order.Now.
	Now bool
	// History is how many of the newest records are copied, at least 16 if there are so many. Workers need no more:
	// the newest has the token, what is done, and the orders. The rest is for people, and comes when workers on the
	// second store may claim already. Default: all. It can't be negative.
	History int
	// InstanceID and Reason are those of the orders: see operate.Order.
	InstanceID, Reason string
	// Clock times the waits. Default: the real clock.
	Clock clock.Clock
	// Told is called as the move goes on, on the goroutine of Move. Optional.
	Told func(p Progress)
}

// Progress is what a move has come to.
type Progress struct {
	// Step is what comes next.
	Step Step
	// Until is, in StepWait, the store time at which the lease ends, by the first store's clock.
	Until time.Time
	// Holder is, in StepWait, the instance that holds it.
	Holder string
	// Others are, in StepPause, as in Result.
	Others []string
}

// Step is a part of a move.
type Step string

// The steps, in their order. StepWait is left out if nobody holds the lease.
const (
	StepPause   Step = "pause"
	StepCopy    Step = "copy"
	StepWait    Step = "wait"
	StepResume  Step = "resume"
	StepHistory Step = "history"
	StepDone    Step = "done"
)

// Result is what a move has done.
type Result struct {
	// Step is what the move has come to. From StepResume on, workers on the second store may claim: after an error then,
	// the pause on the first must not be ended.
	Step Step
	// Copied is how many records were copied, or were there already, and Head the newest of them.
	Copied int
	Head   store.Record
	// Paused is a record of the first store that has the pause in force there. Resumed is the order that ended the one
	// on the second; the zero Record if an earlier move had done so.
	Paused, Resumed store.Record
	// Arriving says that the second store is paused by this move, and was before Paused: workers there claim nothing until it
	// comes to StepResume, even if it fails before the first store is paused, and is never repeated.
	Arriving bool
	// Apart is how far the second store's clock is ahead of the first's, to within the time of two requests.
	Apart time.Duration
	// Others name the workers on both stores that are of another version than this program, by the newest records and the
	// rosters if these can be read: those that are too old to know orders obey no pause, and have no part in what Move
	// promises.
	Others []string
}

// Move moves a worker type from the store where it is: its workers on the first store claim no slot any more, for 366
// days, and those on the second go on where the first have left off: with a larger token, and with what is done. A slot
// that had a holder on the first store has none on the second.
//
// Start workers on the second store when Move has returned, or as soon as it tells StepWait or StepResume: they are
// paused from the first record on, and go on at StepResume. If they were started there before, they may have claimed
// slots of their own, and then the error wraps ErrUsed. On the first store workers may be stopped whenever it suits.
// Both ledgers must be initialised.
//
// The move waits until nobody holds the lease, which takes until the end of the slot, and without limit but for ctx.
// After an error, or the end of ctx, it may be repeated, and goes on, whatever orders were given on either store
// meanwhile; or, before StepResume, it is given up by Resume on the first store. Of two moves from one store to two others
// the later one goes on, and the other one's error wraps ErrMoved. A worker type that has left a store isn't moved from
// there once more, to a third one. A pause of an operator must be ended first; other orders in force come along. Orders on
// the second store that the first hasn't got are refused, unless they were given while the move was under way: then they
// stay in force. An error wraps one of this package's, one of operate.Desk.Give's, or what a store answered. Until StepResume
// nobody has claimed anything on the second store.
//
// What isn't moved: the roster, which workers write anew, and records under store.Sightings.
func Move(ctx context.Context, from, to store.Ledger, o Options) (Result, error) {
	m := mover{o: o, from: from, to: to}
	err := m.check()
	if err == nil {
		err = m.move(ctx)
	}
	if err != nil {
		return m.result, fmt.Errorf("move %.70q: %w", o.WorkerType, err)
	}
	return m.result, nil
}

// mover is a move under way.
type mover struct {
	o        Options
	from, to store.Ledger
	result   Result
	id       string        // of the move, in the pauses on both stores
	now      time.Time     // of the first store, when it was compared
	then     time.Time     // of the second
	other    store.Record  // the newest on the second store when it was compared
	came     bool          // that is on the first, too
	landed   bool          // that has the pause of this move
	lost     []store.Order // of the second store, which the first is to have, too
	lowest   int64         // the pause on the first store is to have this Seq at least, to stand above the second's own records
	oldest   int64         // the Seq of the oldest record that was copied
	resumed  bool          // what can't be copied is for people only
}

// check completes the options.
func (m *mover) check() error {
	var errs []error
	if err := store.CheckWorkerType(m.o.WorkerType); err != nil {
		errs = append(errs, err)
	}
	if m.o.WorkerType == store.Sightings {
		errs = append(errs, fmt.Errorf("%s is no worker type of workers", store.Sightings))
	}
	if m.o.History < 0 {
		errs = append(errs, fmt.Errorf("option History %d: must not be negative", m.o.History))
	}
	if m.o.History == 0 {
		m.o.History = math.MaxInt
	}
	m.o.History = max(m.o.History, needed)
	if m.from == nil || m.to == nil {
		errs = append(errs, errors.New("a ledger is nil: open both stores"))
	}
	if m.o.Clock == nil {
		m.o.Clock = workerlease.NewSystemClock()
	}
	if m.o.Told == nil {
		m.o.Told = func(Progress) {}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return nil
}

func (m *mover) move(ctx context.Context) error {
	at, err := m.begun(ctx)
	if err != nil {
		return err
	}
	if at == begins {
		if err := m.pause(ctx, store.MoveLeaving, m.mayLeave); err != nil {
			return err
		}
		m.tell(StepCopy)
		if err := m.hand(ctx); err != nil {
			return err
		}
	}
	m.tell(StepResume)
	if at != ended {
		if err := m.resume(ctx); err != nil {
			return err
		}
	}
	m.resumed = true
	m.tell(StepHistory)
	if err := m.below(ctx, m.o.History); err != nil {
		return err
	}
	m.tell(StepDone)
	return nil
}

// begun compares the stores, and begins the move on the second one, unless an earlier one has.
func (m *mover) begun(ctx context.Context) (at stage, err error) {
	for range 2 * tries {
		if at, err = m.compare(ctx); err != nil || at != begins {
			return at, err
		}
		if m.came && !m.landed {
			if err = m.apart(ctx); err != nil {
				return at, err
			}
			err = errChanged // By what shows that they are two.
			continue
		}
		if err = m.findOthers(ctx); err != nil {
			return at, err
		}
		m.result.Step = StepPause
		m.o.Told(Progress{Step: StepPause, Others: m.result.Others})
		if err = m.land(ctx); !errors.Is(err, errChanged) {
			m.result.Arriving = err == nil
			break
		}
	}
	return at, err
}

// tell says what comes next.
func (m *mover) tell(s Step) {
	m.result.Step = s
	m.o.Told(Progress{Step: s})
}

// resume ends the pause of this move on the second store, unless that is so.
func (m *mover) resume(ctx context.Context) (err error) {
	o := operate.Order{
		WorkerType: m.o.WorkerType, Target: store.PauseOfMove(store.MoveArriving, m.id), RiskTwoHolders: true, InstanceID: m.o.InstanceID, Reason: m.o.Reason,
		If: func(below store.Record) error {
			switch pause, is := pauseOf(below, m.then); {
			case below.Seq < m.result.Head.Seq:
				return fmt.Errorf("%w: its newest record there is %d, and %d was copied", ErrLost, below.Seq, m.result.Head.Seq)
			case !is:
				return errEnded
			case !isOf(below, store.MoveArriving, m.id):
				return fmt.Errorf("%w: on the second store, %s", ErrPaused, pause)
			}
			return nil
		},
	}
	if m.result.Resumed, err = operate.On(m.to).End(ctx, o); err != nil && !errors.Is(err, errEnded) {
		return fmt.Errorf("%w: %w", ErrSecond, err)
	}
	return nil
}

// look returns the newest record, the zero Record if there is none, and the store's time.
func (m *mover) look(ctx context.Context, l store.Ledger) (store.Record, store.Stamp, error) {
	records, _, err := l.Tail(ctx, m.o.WorkerType, 1)
	if err != nil {
		return store.Record{}, store.Stamp{}, err
	}
	stamp, err := l.Now(ctx)
	if err != nil {
		return store.Record{}, store.Stamp{}, err
	}
	var head store.Record
	for _, r := range records {
		if err := r.CheckEnvelope(); err != nil {
			return store.Record{}, store.Stamp{}, fmt.Errorf("%w: record %d: %w", operate.ErrUnfitHead, r.Seq, err)
		}
		head = r
	}
	return head, stamp, nil
}
