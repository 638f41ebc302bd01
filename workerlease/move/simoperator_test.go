package move_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/move"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// operate is what one operator does.
func (w *world) operate(who int, r *rand.Rand) {
	from, to := 0, 1+r.IntN(2)
	for range 3 + r.IntN(4) {
		time.Sleep(time.Duration(r.Int64N(int64(70 * time.Second))))
		p := w.places[r.IntN(len(w.places))]
		switch n := r.IntN(10); {
		case n < 5:
			if r.IntN(5) == 0 { // another idea
				if from, to = r.IntN(3), r.IntN(3); from == to {
					continue
				}
			}
			_ = w.move(who, from, to, r) // What comes of it is counted.
		case n < 8:
			w.order(who, p, r)
		default:
			w.order(who, p, r)
			n, _ := operate.On(p.l.Handle()).Trim(w.ctx, "mail", workerlease.MinRetention)
			w.mu.Lock()
			w.tally.Trimmed += n
			w.mu.Unlock()
			w.note("operator%d: trim %s: %d", who, p.name, n)
		}
	}
}

// order gives an order on a store.
func (w *world) order(who int, p *place, r *rand.Rand) {
	var err error
	l, by, what := &handle{p.l.Handle(), p, nil, nil}, fmt.Sprint("operator", who), ""
	lasts := time.Duration(1+r.IntN(60)) * time.Second
	if w.o.Job != nil && r.IntN(4) == 0 {
		_, err = operate.On(l).Give(w.ctx, operate.Order{Kind: store.OrderTrigger, WorkerType: "mail", For: lasts, InstanceID: by})
		w.note("%s: trigger on %s: %v", by, p.name, err)
		return
	}
	switch r.IntN(6) {
	case 0:
		what = "prefer"
		_, err = operate.On(l).Give(w.ctx, operate.Order{Kind: store.OrderPrefer, WorkerType: "mail", Target: fmt.Sprint(p.name, 1), For: lasts, InstanceID: by})
	case 1:
		what = "drain"
		_, err = operate.On(l).Give(w.ctx, operate.Order{Kind: store.OrderDrain, WorkerType: "mail", Target: "elsewhere", For: lasts, InstanceID: by})
	case 2:
		what = "pause"
		_, err = operate.On(l).Give(w.ctx, operate.Order{Kind: store.OrderPause, WorkerType: "mail", For: lasts, Now: r.IntN(2) == 0, InstanceID: by})
	case 3:
		what = "release"
		_, err = operate.On(l).Give(w.ctx, operate.Order{Kind: store.OrderRelease, WorkerType: "mail", InstanceID: by})
	case 4:
		what = "resume"
		_, err = operate.On(l).End(w.ctx, operate.Order{WorkerType: "mail", InstanceID: by, RiskTwoHolders: w.broken == noGuard})
	case 5:
		what = "override"
		head, _, _ := p.l.Tail(w.ctx, "mail", 1)
		if len(head) == 0 || p != w.places[0] {
			return
		}
		_, err = operate.On(l).Override(w.ctx, operate.OverrideOptions{WorkerType: "mail", Seq: head[0].Seq, InstanceID: by})
		w.mu.Lock()
		w.overridden = true
		w.mu.Unlock()
	}
	w.note("%s: %s on %s: %v", by, what, p.name, err)
	if errors.Is(err, operate.ErrPausedByMove) {
		w.mu.Lock()
		w.tally.Refused++
		w.mu.Unlock()
	}
}

// move moves the worker type, unless that is interrupted.
func (w *world) move(who, from, to int, r *rand.Rand) error {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	if r != nil && r.IntN(2) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(1+r.Int64N(int64(90*time.Second))))
		defer cancel()
	}
	source, target := w.places[from], w.places[to]
	source.mu.Lock()
	never := source != w.places[0] && source.paused.IsZero()
	source.mu.Unlock()
	if never {
		return nil // The worker type was never there.
	}
	tooOld := w.worksTooOld(source) // A few records may come before the move reads them.
	some, history := &breaking{n: 1 << 30}, 0
	if r != nil && r.IntN(2) == 0 {
		history = 16
	}
	if r != nil && r.IntN(2) == 0 {
		some = &breaking{n: r.IntN(90), lost: r.IntN(2) == 0}
	}
	o := move.Options{WorkerType: "mail", InstanceID: fmt.Sprint("operator", who), History: history, Clock: clock.New(), Told: func(p move.Progress) {
		w.note("operator%d: move from %s to %s: %s", who, source.name, target.name, p.Step)
		if p.Step == move.StepPause && tooOld {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tally.Named++
			if !strings.Contains(strings.Join(p.Others, " "), oldName) {
				w.unnamed = append(w.unnamed, fmt.Sprintf("the move of operator%d from %s named %q", who, source.name, p.Others))
			}
		}
		if p.Step == move.StepWait || p.Step == move.StepResume {
			w.start(target, 2, nil)
		}
	}}
	var late func(store.Record) time.Duration
	if r != nil && r.IntN(2) == 0 {
		late = sometimes(r, 3)
	}
	var slow func() time.Duration
	if r != nil && r.IntN(3) == 0 {
		slow = stuck(r, 8)
	}
	o.Now = r != nil && r.IntN(3) == 0
	a, b := some.wrap(&handle{source.l.Handle(), source, late, slow}), some.wrap(&handle{target.l.Handle(), target, late, slow})
	a, b = w.spoiled(a, b)
	result, err := move.Move(ctx, a, b, o)
	if result.Resumed.Seq > 0 {
		target.mu.Lock()
		target.resumed = append(target.resumed, time.Now())
		target.mu.Unlock()
	}
	w.note("operator%d: move from %s to %s = %v", who, source.name, target.name, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.tally.Moved++
	case errors.Is(err, move.ErrMoved):
		w.tally.Beaten++
	case errors.Is(err, move.ErrGivenUp):
		w.tally.GivenUp++
	case errors.Is(err, errBroken), errors.Is(err, context.DeadlineExceeded):
		w.tally.Again++
	}
	return err
}

// worksTooOld reports that the worker which is too old to know orders has one of the newest grants of a store.
func (w *world) worksTooOld(p *place) bool {
	records, _, _ := p.l.Tail(w.ctx, "mail", 8)
	return slices.ContainsFunc(records, func(r store.Record) bool { return r.Kind == store.KindGrant && r.InstanceID == oldName })
}

// end ends what is open, by what an operator is told to do, and demands that somebody works again.
func (w *world) end() {
	for try := 0; ; try++ {
		for _, p := range w.places {
			_, _ = operate.On(p.l.Handle()).End(w.ctx, operate.Order{WorkerType: "mail"})
			_, _ = operate.On(p.l.Handle()).End(w.ctx, operate.Order{WorkerType: "mail", Kind: store.OrderDrain})
			_, _ = operate.On(p.l.Handle()).End(w.ctx, operate.Order{WorkerType: "mail", Kind: store.OrderPrefer})
			w.start(p, 1, nil)
		}
		from := time.Now()
		time.Sleep(4 * time.Minute)
		w.mu.Lock()
		works := slices.ContainsFunc(w.turns, func(x *session) bool { return x.ended.IsZero() || x.ended.After(from) })
		w.mu.Unlock()
		if works {
			return
		}
		if try == 2 {
			for _, p := range w.places {
				records, stamp, _ := p.l.Tail(w.ctx, "mail", 3)
				w.note("%s at %s has %+v", p.name, store.Format(stamp.Time), records)
			}
			w.t.Errorf("nobody works, and no command changes that:\n%s", strings.Join(w.log, "\n"))
			return
		}
		for _, step := range [][2]int{{0, 1}, {0, 2}, {1, 2}, {1, 0}, {2, 0}, {2, 1}} {
			head, stamp, _ := w.places[step[0]].l.Tail(w.ctx, "mail", 1)
			if len(head) > 0 && len(head[0].OrdersAt(stamp.Time)) > 0 { // repeats what isn't ended
				_ = w.move(9, step[0], step[1], nil)
			}
		}
	}
}

// overlap names two that worked at once. What was claimed on a store before the first move there had paused it is the fault of
// a worker that was started too early.
func (w *world) overlap() string {
	if len(w.unnamed) > 0 {
		return fmt.Sprintf("a worker too old to know orders wasn't named: %q", w.unnamed)
	}
	if w.stays {
		return "" // It obeys no pause, and what it appends has none: its overlaps are told by its name alone.
	}
	var known []*session
	for _, x := range w.turns {
		x.p.mu.Lock()
		foreign := x.p != w.places[0] && (x.p.paused.IsZero() || x.p.landed[x.token].Before(x.p.paused))
		x.p.mu.Unlock()
		if foreign {
			w.tally.Foreign++
			for _, at := range x.p.resumed {
				if x.began.Before(at) && at.Before(x.ended) {
					return fmt.Sprintf("%s was moved to at %s, where somebody worked from %s to %s:\n%s", x.p.name, at.Format("15:04:05"), x.began.Format("15:04:05"),
						x.ended.Format("15:04:05"), strings.Join(w.log, "\n"))
				}
			}
			continue
		}
		known = append(known, x)
	}
	for i, x := range known {
		for _, y := range known[:i] {
			if w.overridden && x.p == y.p || x.group != "" && x.group == y.group && x.token == y.token {
				continue
			}
			if x.began.Before(y.ended) && y.began.Before(x.ended) {
				return fmt.Sprintf("%s worked from %s to %s, and %s from %s to %s:\n%s", x.p.name, x.began.Format("15:04:05"), x.ended.Format("15:04:05"),
					y.p.name, y.began.Format("15:04:05"), y.ended.Format("15:04:05"), strings.Join(w.log, "\n"))
			}
			if x.done && y.done && x.slot.Start.Equal(y.slot.Start) && !w.overridden && !w.slow {
				return fmt.Sprintf("the slot %v was done on %s and on %s:\n%s", x.slot, y.p.name, x.p.name, strings.Join(w.log, "\n"))
			}
			if x.token < y.token && x.began.After(y.ended) {
				return fmt.Sprintf("token %d of %s after %d of %s:\n%s", x.token, x.p.name, y.token, y.p.name, strings.Join(w.log, "\n"))
			}
		}
	}
	return ""
}
