package move

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
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
	// The reasons of the pause on the first store begin with these: while the move is under way, and before workers on
	// the second may claim. They tell a move's pause from an operator's, and one that has come to its end from others.
	moving = "it moves to another store"
	moved  = "it was moved to another store"
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
	// ErrMoved: the worker type was moved from the first store, and not to the second one.
	ErrMoved = errors.New("the worker type was moved to another store")
	// ErrGivenUp: the pause on the first store was ended, or another took its place, while the move was under way. It
	// stays on the second store.
	ErrGivenUp = errors.New("the move was given up on the first store")
)

// Options of Move. WorkerType is required.
type Options struct {
	WorkerType string
	// Now asks the holder to stop when it reads the pause, in place of at the end of its slot: see PauseOptions.Now.
	Now bool
	// History is how many of the newest records are copied, at least 16 if there are so many. Workers need no more:
	// the newest has the token, what is done, and the orders. The rest is for people, and comes when workers on the
	// second store may claim already. Default: all. It can't be negative.
	History int
	// InstanceID and Reason are those of the orders: see workerlease.PauseOptions.
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
	// Apart is how far the second store's clock is ahead of the first's, to within the time of two requests.
	Apart time.Duration
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
// After an error, or the end of ctx, it may be repeated, and goes on; or, before StepResume, it is given up by Resume on
// the first store. A worker type that has left a store isn't moved from there once more, to a third one. A pause of an
// operator must be ended first; other orders in force come along. Orders on the second store that the first hasn't got
// are refused. An error wraps one of this package's, one of Client.Pause's, or what a store answered. Until StepResume
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
	oldest   int64 // the Seq of the oldest record that was copied
	there    int64 // the Seq of the newest record on the second store, before anything was copied
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
	copied, err := m.compare(ctx)
	if err != nil {
		return err
	}
	if !copied {
		m.tell(StepPause)
		if err := m.pause(ctx, moving); err != nil {
			return err
		}
		m.tell(StepCopy)
		if err := m.hand(ctx); err != nil {
			return err
		}
	}
	if err := m.resume(ctx, copied); err != nil {
		return err
	}
	m.tell(StepHistory)
	if err := m.below(ctx, m.o.History); err != nil {
		return err
	}
	m.tell(StepDone)
	return nil
}

// tell says what comes next.
func (m *mover) tell(s Step) {
	m.result.Step = s
	m.o.Told(Progress{Step: s})
}

// resume ends the pause on the second store, unless that is so.
func (m *mover) resume(ctx context.Context, copied bool) error {
	if !copied {
		// What is on the first store up to now has the pause in force. From the next record on, the type has left it.
		if err := m.follow(ctx); err != nil {
			return err
		}
		if err := m.pause(ctx, moved); err != nil {
			return err
		}
		if err := m.follow(ctx); err != nil {
			return err
		}
	}
	head, now, err := m.look(ctx, m.to)
	if err != nil {
		return fmt.Errorf("the second store: %w", err)
	}
	m.tell(StepResume)
	pause, is := pauseOf(head, now.Time)
	if !is {
		return nil
	}
	if mine, _ := pauseOf(m.result.Head, m.result.Paused.ReadAt); !pause.At.Equal(mine.At) || !pause.Until.Equal(mine.Until) {
		return fmt.Errorf("%w: on the second store, %s", ErrPaused, pause)
	}
	o := workerlease.ResumeOptions{WorkerType: m.o.WorkerType, InstanceID: m.o.InstanceID, Reason: m.o.Reason}
	if m.result.Resumed, err = workerlease.Resume(ctx, m.to, o); err != nil {
		return fmt.Errorf("resume on the second store: %w", err)
	}
	return nil
}

// paused returns ErrGivenUp if a record of the first store, appended since the pause, hasn't got one of a move.
func (m *mover) paused(r store.Record) error {
	switch pause, is := pauseOf(r, m.result.Paused.ReadAt); {
	case !is:
		return fmt.Errorf("%w: record %d there has no pause", ErrGivenUp, r.Seq)
	case !ofMove(pause):
		return fmt.Errorf("%w: record %d there has another pause: %s", ErrGivenUp, r.Seq, pause)
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
			return store.Record{}, store.Stamp{}, fmt.Errorf("%w: record %d: %w", workerlease.ErrUnfitHead, r.Seq, err)
		}
		head = r
	}
	return head, stamp, nil
}

// pause pauses the worker type on the first store, for a reason.
func (m *mover) pause(ctx context.Context, why string) error {
	if m.o.Reason != "" {
		why += ": " + m.o.Reason
	}
	if len(why) > store.MaxOrderText {
		why = strings.ToValidUTF8(why[:store.MaxOrderText], "")
	}
	o := workerlease.PauseOptions{WorkerType: m.o.WorkerType, For: lasts, Now: m.o.Now, InstanceID: m.o.InstanceID, Reason: why}
	r, err := workerlease.Pause(ctx, m.from, o)
	if err != nil {
		return fmt.Errorf("pause on the first store: %w", err)
	}
	m.result.Paused = r
	return nil
}

// wait waits until nobody holds the lease on the first store, surely, and nothing more is appended there.
func (m *mover) wait(ctx context.Context) error {
	last := int64(-1)
	for {
		head, stamp, err := m.look(ctx, m.from)
		if err != nil {
			return fmt.Errorf("the first store: %w", err)
		}
		if err := m.paused(head); err != nil {
			return err
		}
		// The stamp was made before now, and no worker's store time is behind it by more than the skew.
		left := head.WindowEnd.Sub(stamp.Time.Add(-stamp.Skew))
		switch {
		case left > 0:
			m.result.Step = StepWait
			m.o.Told(Progress{Step: StepWait, Until: head.WindowEnd, Holder: head.InstanceID})
			left, head.Seq = min(left+stamp.Granularity, looks), -1
		case head.Seq == last:
			return nil
		case head.Attempt > 0 && head.DoneUntil.Before(head.SlotEnd):
			left = closes
		default:
			left = settles
		}
		last = head.Seq
		if err := m.sleep(ctx, left); err != nil {
			return err
		}
	}
}

// sleep waits, at most until ctx ends.
func (m *mover) sleep(ctx context.Context, d time.Duration) error {
	t := m.o.Clock.Timer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
