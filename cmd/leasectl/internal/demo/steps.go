package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
)

// setClock measures the difference between store time and the boot clock, in which the work
// logs. It is fixed, because both are this machine's.
func (d *demo) setClock(ctx context.Context) error {
	best := time.Hour
	for range 5 {
		before := guard.Boottime()
		stamp, err := d.ledger.Now(ctx)
		if err != nil {
			return ended(err)
		}
		if trip := guard.Boottime() - before; trip < best {
			best, d.zero = trip, stamp.Time.Add(-before-trip/2)
		}
	}
	return nil
}

// now is store time.
func (d *demo) now() time.Time { return d.zero.Add(guard.Boottime()) }

// watch shows the slots as they begin, and kills and starts the leader as
// planned, until the last slot is over.
func (d *demo) watch(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	todo := d.steps()
	shown := 0
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-d.workers.died:
			return err
		case <-ticker.C:
		}
		lines, err := d.log.Read()
		if err != nil {
			return err
		}
		works := worksOf(lines, d.zero)
		for _, w := range works[min(shown, len(works)):] {
			if d.plan.index(w.slot) >= 0 {
				d.screen.slot(d.plan, works, w, d.workers)
			}
		}
		shown = len(works)
		for len(todo) > 0 && !d.now().Before(todo[0].at) {
			if err := todo[0].do(works); err != nil {
				return err
			}
			todo = todo[1:]
		}
		if len(todo) == 0 {
			return nil
		}
	}
}

// step is something that the demo does at a moment of store time.
type step struct {
	at time.Time
	do func(works []work) error
}

// steps are what the demo does while the workers work.
func (d *demo) steps() []step {
	p := d.plan
	return []step{
		{p.start(p.kill).Add(p.interval / 2), func(works []work) error {
			name := d.workers.first()
			for _, w := range works {
				if w.slot.Equal(p.start(p.kill)) {
					name = w.worker
				}
			}
			pid := d.workers.kill(name)
			d.screen.event(d.now(), fmt.Sprintf("killed %s halfway through its slot (SIGKILL, pid %d)", name, pid), table.Red)
			return nil
		}},
		{p.start(p.back).Add(p.interval / 8), func([]work) error {
			name := d.workers.killed
			d.screen.event(d.now(), "started "+name+" again; it competes for the next boundary", table.Plain)
			return d.workers.start(name)
		}},
		{p.start(p.slots).Add(-stopEarly), func([]work) error { return nil }},
	}
}
