//go:build linux

package main

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

// escapeVerdict is what all tries to escape have shown.
type escapeVerdict struct {
	verdict

	tries     int
	processes map[string]int // that worked, by kind
	ways      map[kind]int
	worlds    map[world]int
	windows   int             // in which commands worked
	released  int             // of these windows, by their holder
	left      []time.Duration // from a process's last line to the end of its window
	stalled   int             // processes that were late because nothing got the processor
	void      []string
}

// read judges a try by what it has left behind. The heartbeats are the only witness: nothing
// that leasectl or its guard says counts.
func (v *escapeVerdict) read(e escaped, left evidence, g *gauge) {
	v.judge(left, 0)
	v.judgeTurns(e.flight, left, g)
	if e.void != "" {
		v.void = append(v.void, e.void)
		return
	}
	v.tries++
	count(&v.ways, e.how)
	count(&v.worlds, e.world)
	for _, t := range left.turns {
		count(&v.processes, t.role)
	}
}

func count[K comparable](m *map[K]int, k K) {
	if *m == nil {
		*m = map[K]int{}
	}
	(*m)[k]++
}

// judgeTurns demands that nothing worked after the end of its window, nor when that was released.
func (v *escapeVerdict) judgeTurns(f flight, e evidence, g *gauge) {
	ends, released := map[int64]time.Time{}, map[int64]time.Time{}
	for _, r := range e.records {
		switch r.Kind {
		case store.KindGrant:
			ends[r.Token] = r.WindowEnd
		case store.KindRelease:
			released[r.Token] = r.WindowStart
		default:
		}
	}
	windows := map[int64]bool{}
	for _, t := range e.turns {
		end, granted := ends[t.token]
		if !granted {
			continue // judged already
		}
		last := e.zero.Add(t.last)
		if at, ok := released[t.token]; ok {
			if after := last.Sub(at) - e.tolerance; after > 0 {
				v.bad("%v: the lease was released %v before the last line of %v", f, after, t)
			}
			if !windows[t.token] {
				v.released++
			}
		}
		windows[t.token] = true
		late := last.Sub(end) - e.tolerance
		v.left = append(v.left, -late)
		switch over := t.last - late; {
		case late <= 0:
		case late <= g.stalled(over-escapeMargin, t.last):
			v.stalled++
			v.note("%v: %v after the window, when the harness itself got no processor: %v", f, late, t)
		default:
			v.bad("%v: alive %v after the window: %v", f, late, t)
		}
	}
	v.windows += len(windows)
}

// judgeExtent demands that the tries show something: nine of ten, each kind, world and way
// that was planned among them.
func (v *escapeVerdict) judgeExtent(plan []flight) {
	for _, text := range v.void {
		v.note("shows nothing: %s", text)
	}
	if 10*v.tries < 9*len(plan) {
		v.bad("%d of %d tries show something, want nine of ten", v.tries, len(plan))
	}
	if len(v.void) > 0 {
		return // What is missing may be among them.
	}
	for _, f := range plan {
		for _, kind := range f.kinds {
			if v.processes[kind] == 0 {
				v.bad("%v: no process of the kind %s worked", f, kind)
			}
		}
	}
}

func (v *escapeVerdict) report() *report {
	r := v.newReport("Escapes: slots of %v, margin %v, %d kinds of processes for each command", escapeSlot, escapeMargin, escapeKinds)
	sum := 0
	for _, n := range v.processes {
		sum += n
	}
	r.figure("commands whose processes tried to escape", v.tries)
	counts(r, "  in the world: %s", v.worlds)
	counts(r, "  ended by: %s", v.ways)
	r.row("tries that show nothing", len(v.void))
	r.figure("windows in which they worked", v.windows)
	r.figure("windows that were released", v.released)
	r.figure("processes that worked", sum)
	counts(r, "  %s", v.processes)
	r.figure("from a process's last line to the end of its window, least", quantile(sorted(v.left), 0))
	r.figure("alive after the window, when nothing got a processor", v.stalled)
	return v.end(r, "No process worked after the window, nor after the release of its lease; never two leases at once.")
}
