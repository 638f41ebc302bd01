package move

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// reasons begin the reasons of the pauses of a move. None is longer than the first, whose place the others take.
var reasons = map[store.MoveRole]string{
	store.MoveLeaving:  "resume here gives up that it moves to another store",
	store.MoveLeft:     "don't resume it here: it was moved to another store",
	store.MoveArriving: "don't resume it here: it moves to this store",
}

// pause pauses the worker type on the first store.
func (m *mover) pause(ctx context.Context, role store.MoveRole, mayFollow func(store.Record) error) error {
	r, err := operate.On(m.from).Give(ctx, m.pauseAs(role, mayFollow))
	if errors.Is(err, operate.ErrOrderUnknown) && role == store.MoveLeft {
		m.result.Step = StepResume // The type may have left.
	}
	if err != nil {
		return fmt.Errorf("pause on the first store: %w", err)
	}
	m.result.Paused = r
	return nil
}

// pauseAs are the options of a pause of this move. On the second store it is at once: a member of the holder's group would join
// the lease there that is copied, and go on though the move is given up, or by that store's clock.
func (m *mover) pauseAs(role store.MoveRole, mayFollow func(store.Record) error) operate.Order {
	why := reasons[role]
	if m.o.Reason != "" {
		why += ": " + m.o.Reason
	}
	if len(why) > store.MaxOrderText {
		why = strings.ToValidUTF8(why[:store.MaxOrderText], "")
	}
	return operate.Order{
		Kind: store.OrderPause, WorkerType: m.o.WorkerType, For: lasts, Now: m.o.Now || role == store.MoveArriving, InstanceID: m.o.InstanceID, Reason: why,
		Target: store.PauseOfMove(role, m.id), If: mayFollow,
	}
}

// mayLeave returns why a move may not begin above a record of the first store. A move that another one began, and didn't
// end, makes room for this one: it notices that before workers on its own second store may claim.
func (m *mover) mayLeave(below store.Record) error {
	pause, is := pauseOf(below, m.now)
	switch role, _ := pause.Move(); {
	case !is, role == store.MoveLeaving:
		return nil
	case role == store.MoveLeft:
		return fmt.Errorf("%w meanwhile: on the first, %s", ErrMoved, pause)
	}
	return fmt.Errorf("%w: on the first store, %s", ErrPaused, pause)
}

// paused returns an error if a record of the first store, appended since the pause of this move, hasn't got it.
func (m *mover) paused(r store.Record) error {
	pause, is := pauseOf(r, m.now)
	switch role, id := pause.Move(); {
	case !is:
		return fmt.Errorf("%w: record %d there, of %s, has no pause", ErrGivenUp, r.Seq, writer(r))
	case role != "" && id != m.id:
		return fmt.Errorf("%w by another move: record %d there has %s", ErrMoved, r.Seq, pause)
	case role == "":
		return fmt.Errorf("%w: record %d there has another pause: %s", ErrGivenUp, r.Seq, pause)
	}
	return nil
}

// writer names who wrote a record, for people.
func writer(r store.Record) string {
	return fmt.Sprintf("%q on %q, version %q", r.InstanceID, r.Worker.Host, r.Worker.Version)
}
