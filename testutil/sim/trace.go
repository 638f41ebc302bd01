package sim

import (
	"fmt"
	"time"
)

// line is one line of a trace.
type line struct {
	at   time.Duration
	text string
}

// alarm is a worker's report that the store's clock (Jump) or its records (Rollback) can't be
// trusted.
type alarm struct {
	at   time.Duration
	by   *Process
	kind Fault
}

// fail ends the simulation with an error.
func (w *world) fail(err error) {
	w.notes.Lock()
	defer w.notes.Unlock()
	if w.failed == nil {
		w.failed = err
	}
}

func (w *world) stopped() bool {
	w.notes.Lock()
	defer w.notes.Unlock()
	return w.failed != nil
}

// kept is how many violations are kept.
const kept = 20

// violate notes a violation.
func (w *world) violate(format string, args ...any) {
	at := w.now()
	w.notes.Lock()
	defer w.notes.Unlock()
	w.wrong(at, fmt.Sprintf(format, args...))
}

// wrong keeps a violation while there are few. The caller holds the mutex notes.
func (w *world) wrong(at time.Duration, what string) {
	if len(w.violations) == kept {
		w.more++
		return
	}
	text := fmt.Sprintf("at %v: %s", shown(at), what)
	w.violations = append(w.violations, text)
	if w.o.Trace {
		w.lines = append(w.lines, line{at, fmt.Sprint(at, " VIOLATION ", text)})
	}
}

// shown is a time rounded for display.
func shown(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// traceOutages adds the outages of hosts and of the store to the trace.
func (w *world) traceOutages() {
	if !w.o.Trace {
		return
	}
	add := func(who string, spells outages) {
		for _, s := range spells {
			if s.from < w.o.Length {
				w.lines = append(w.lines, line{s.from, fmt.Sprintf("%v %s %s until %v", s.from, who, s.kind, shown(s.to))})
			}
		}
	}
	for _, h := range w.hosts {
		who := fmt.Sprintf("w%d's host:", h.worker)
		add(who, h.stalls)
		add(who, h.cuts)
	}
	for _, s := range []outages{w.server.outages, w.server.elections, w.server.steps, w.server.jumps, w.server.votes, w.server.lies} {
		add("store:", s)
	}
}

// alarm notes a worker's report that the store can't be trusted.
func (w *world) alarm(p *Process, kind Fault) {
	at := w.now()
	w.notes.Lock()
	defer w.notes.Unlock()
	w.alarms = append(w.alarms, alarm{at, p, kind})
	if w.o.Trace {
		w.lines = append(w.lines, line{at, fmt.Sprintf("%v %v ALARM %s", at, p, kind)})
	}
}

// tracef adds a line to the trace, if there is one, unless the process is dead.
func (p *Process) tracef(format string, args ...any) {
	w := p.world
	if !w.o.Trace || p.dead.Load() {
		return
	}
	at := w.now()
	w.notes.Lock()
	defer w.notes.Unlock()
	w.lines = append(w.lines, line{at, fmt.Sprintf("%v %v ", at, p) + fmt.Sprintf(format, args...)})
}
