package workerlease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// random is a job with slots of a minute, whose workers start, stop, die and are cut off at random for a quarter of an hour, whom an
// operator pauses, and whose runs fail or take too long.
type random struct {
	t      *testing.T
	rand   *rand.Rand
	job    workerlease.Job
	parts  time.Duration // FailoverWithin
	ledger *memory.Ledger

	mu    sync.Mutex                        // guards what follows, and rand
	began map[time.Duration][]time.Duration // by slot
	log   []string
	open  int
	ids   int
	alive []*shortLived
	links []*faultstore.Ledger
	told  map[time.Duration][]word // by slot

	paused map[time.Duration]bool // by slot: up to its last start
}

// shortLived is a worker that may die.
type shortLived struct {
	*worker
	link *faultstore.Ledger
	name string
	away bool
}

// word is what a worker says of a slot.
type word struct {
	at     time.Duration
	missed bool // else it was skipped, or its worker has died
	paused bool // it is said at once, and an attempt may follow
	text   string
}

// logf notes what happens. The caller holds mu.
func (x *random) logf(format string, a ...any) {
	x.log = append(x.log, fmt.Sprintf("%v ", time.Since(t0))+fmt.Sprintf(format, a...))
}

func (x *random) note(format string, a ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.logf(format, a...)
}

// run is a task: of four runs one is long, and one fails.
func (x *random) run(ctx context.Context, l workerlease.Lease) error {
	slot := since(l.Slot.Start)
	x.mu.Lock()
	x.logf("slot %v, attempt %d begins, late: %v", slot, l.Attempt, l.Missed)
	x.began[slot] = append(x.began[slot], time.Since(t0))
	if x.open++; x.open > 1 {
		x.t.Errorf("at %v two run at once", time.Since(t0))
	}
	takes, fails := time.Duration(1+x.rand.IntN(20))*time.Second, x.rand.IntN(4) == 0
	if x.rand.IntN(4) == 0 {
		takes = time.Duration(40+x.rand.IntN(150)) * time.Second
	}
	x.mu.Unlock()
	err := waits(ctx, takes)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open--; err == nil && fails {
		err = errWork
	}
	x.logf("slot %v ends: %v", slot, err)
	return err
}

// draw is a number below n.
func (x *random) draw(n int) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.rand.IntN(n)
}

func (x *random) starts() {
	x.ids++
	job := x.job
	o := named(fmt.Sprint("w", x.ids), x.draw(2))
	o.LeaseInterval, o.FailoverWithin, o.Job = time.Minute, x.parts, &job
	link := faultstore.New(x.ledger.Handle(), faultstore.Options{})
	x.note("%s starts", o.InstanceID)
	x.alive = append(x.alive, &shortLived{start(x.t, setup{asGiven: true, ledger: link, Options: o, task: x.run}), link, o.InstanceID, false})
	x.links = append(x.links, link)
}

// ends ends one of them, by a signal, or in a way after which nobody hears of it.
func (x *random) ends(dies bool) {
	i := x.draw(len(x.alive))
	w := x.alive[i]
	x.note("%s ends, and dies: %v", w.name, dies)
	if dies {
		w.link.Break(faultstore.Down())
	} else {
		w.link.Mend()
		w.stop(x.t)
	}
	x.hear(w)
	x.alive = append(x.alive[:i], x.alive[i+1:]...)
}

// cutsOff takes a worker the store, or gives it back.
func (x *random) cutsOff(w *shortLived) {
	w.away = !w.away
	x.note("%s is cut off: %v", w.name, w.away)
	if w.away {
		w.link.Break(faultstore.Down())
	} else {
		w.link.Mend()
	}
}

func (x *random) pauses(long time.Duration) {
	until := time.Since(t0) + long
	x.note("paused until %v", until)
	pause(x.t, x.ledger.Handle(), until, x.draw(2) == 0)
	for slot := time.Since(t0).Truncate(time.Minute); slot < until; slot += time.Minute {
		x.paused[slot] = x.paused[slot] || until > slot+15*time.Second
	}
}

// hear takes in what a worker has said.
func (x *random) hear(w *shortLived) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.events {
		says := func(slot time.Duration, missed bool) {
			m, _ := s.Event.(event.Missed)
			x.told[slot] = append(x.told[slot], word{s.at, missed, m.Why == workerlease.Paused, fmt.Sprintf("%v %s: %T %v", s.at, w.name, s.Event, s.Event)})
		}
		switch e := s.Event.(type) {
		case event.Missed:
			for slot := e.Slot; slot.Start.Before(e.Until); slot = eachMinute.Next(slot.Start) {
				says(since(slot.Start), true)
			}
		case event.WorkerDied:
			says(since(e.Slot.Start), false)
		case event.Skipped:
			says(since(e.Slot.Start), false)
		}
	}
}

// lives lets workers start and end for twelve minutes; those that are left go on for eight.
func (x *random) lives() {
	const end = 12 * time.Minute
	x.starts()
	at(40 * time.Second)
	for time.Since(t0) < end {
		at(time.Since(t0) + time.Duration(x.draw(60000))*time.Millisecond)
		switch {
		case len(x.alive) == 0 || x.draw(3) == 0 && len(x.alive) < 3:
			x.starts()
		case x.draw(2) == 0:
			x.ends(true)
		case x.draw(2) == 0:
			x.ends(false)
		case x.draw(3) == 0:
			x.pauses(time.Duration(10+x.draw(150)) * time.Second)
		default:
			x.cutsOff(x.alive[x.draw(len(x.alive))])
		}
	}
	if len(x.alive) == 0 {
		x.starts()
	}
	for _, w := range x.alive {
		w.link.Mend()
	}
	at(end + 8*time.Minute)
	for _, w := range x.alive {
		x.hear(w)
	}
	for _, link := range x.links {
		link.Mend()
	}
}

// Whatever ends, each slot of a job is begun, or somebody says why it isn't; and none is said to be missed that was begun, or is run
// late.
func TestEachSlotIsBegunOrTold(t *testing.T) {
	seeds := 30
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		bubble(t, fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			x := &random{t: t, rand: r, ledger: memory.New(memory.Options{}), began: map[time.Duration][]time.Duration{}, told: map[time.Duration][]word{}, paused: map[time.Duration]bool{}}
			x.job.CatchUp = []workerlease.CatchUp{workerlease.CatchUpNone, workerlease.CatchUpNone, workerlease.CatchUpNewest}[r.IntN(3)]
			x.job.Overrun, x.job.MaxAttempts = workerlease.OverrunPolicy(r.IntN(2)), r.IntN(3)
			x.parts = []time.Duration{0, 30 * time.Second}[r.IntN(2)]
			x.lives()
			x.mu.Lock()
			defer x.mu.Unlock()
			for slot := time.Duration(0); slot < 16*time.Minute; slot += time.Minute {
				wrong := ""
				if len(x.began[slot])+len(x.told[slot]) == 0 && !x.paused[slot] { // Those who were paused may all have died.
					wrong = "it was not begun, and nobody says why"
				}
				for _, y := range x.told[slot] {
					if y.missed && len(x.began[slot]) > 0 && (x.began[slot][0] < y.at || x.job.CatchUp != workerlease.CatchUpNone && !y.paused) {
						wrong = fmt.Sprintf("begun at %v, and %s", x.began[slot][0], y.text)
					}
				}
				if wrong != "" {
					t.Errorf("slot %v of %+v: %s\n%s", slot, x.job, wrong, strings.Join(x.log, "\n"))
				}
			}
		})
	}
}
