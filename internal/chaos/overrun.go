//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"time"
)

// The scenario of jobs that take longer than their slots: the run goes on, and the slots that begin meanwhile are
// skipped.
const (
	overrunSlot     = 8 * time.Second
	overrunFailover = overrunSlot / 2
	overrunStart    = overrunSlot / 4 // leasectl's own choice of --start-within
)

// overruns are how many slots a run takes, of each worker type.
var overruns = []float64{1.3, 1.3, 1.3, 1.3, 1.3, 5}

// overrunType is one of the worker types. Its workers take turns.
func overrunType(i int) workerType {
	return workerType{
		name: fmt.Sprintf("long-%d", i), interval: overrunSlot, tieBreak: "rotate", control: -1, behavior: fmt.Sprint(overruns[i]),
		flags: []string{"--once-per-slot", "--failover-within", overrunFailover.String()},
	}
}

// runOverrun goes on until as many runs as asked have ended, and one of each worker type.
func runOverrun(ctx context.Context, h *harness) (*report, error) {
	var types []workerType
	for i := range overruns {
		types = append(types, overrunType(i))
	}
	v := &overrunVerdict{}
	err := h.together(ctx, types, func(teams []*team, workers []*worker) error {
		begun := boottime()
		if err := h.awaitRuns(ctx, teams); err != nil {
			return err
		}
		over := boottime()
		shown := make([]map[int64]string, len(teams))
		for i, t := range teams {
			var err error
			if shown[i], err = t.shown(ctx); err != nil {
				return err
			}
		}
		h.leave(ctx, workers)
		v.verdict = h.verdict()
		for i, t := range teams {
			e, err := t.evidence(ctx)
			if err != nil {
				return err
			}
			old := ""
			if h.older != "" {
				old = t.of.instance(i % perType)
			}
			v.judge(e, over)
			v.judgeRuns(e, shown[i], slotsOf(t.of, begun, over, t.zero), over, old, &h.gauge)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return v.report(), nil
}

// awaitRuns waits until enough runs have ended. An older worker whose runs are cut may keep the lease for as long as it
// is there, so it is replaced after four slots.
func (h *harness) awaitRuns(ctx context.Context, teams []*team) error {
	const silent = 12 * overrunSlot
	begun, upgrade := boottime(), h.older != ""
	newest := begun // when a run has ended
	for sum, finished := 0, make([]int, len(teams)); sum < h.tries || slices.Min(finished) < 1 || upgrade; {
		for i, t := range teams {
			lines, err := t.log.next()
			if err != nil {
				return err
			}
			if n := (chronicle{lines: lines}).count(ended); n > 0 {
				sum, finished[i], newest = sum+n, finished[i]+n, boottime()
			}
		}
		if upgrade && boottime() > begun+4*overrunSlot {
			for i, t := range teams {
				if err := t.replace(ctx, t.workers[i%perType], 0); err != nil {
					return err
				}
			}
			upgrade, newest = false, boottime()
		}
		if boottime() > newest+silent {
			h.bad("no run has ended for %v", silent)
			return nil
		}
		if !pause(ctx, 50*ms) {
			return ctx.Err()
		}
	}
	return nil
}

// shown are the states of slots, by their starts in Unix ms, as leasectl inspect shows them.
func (t *team) shown(ctx context.Context) (map[int64]string, error) {
	out, err := exec.CommandContext(ctx, t.program, "inspect", "slots", "--store", t.backend.address(t.of, 0), "--worker-type", t.of.name, "--last", "1000", "--output", "json").Output()
	if err != nil {
		return nil, fmt.Errorf("leasectl inspect slots of %s: %w", t.of.name, err)
	}
	var snapshot struct {
		Slots []struct {
			SlotStart time.Time
			State     string
		}
	}
	if err := json.Unmarshal(out, &snapshot); err != nil {
		return nil, fmt.Errorf("leasectl inspect slots of %s: %w", t.of.name, err)
	}
	states := map[int64]string{}
	for _, s := range snapshot.Slots {
		states[s.SlotStart.UnixMilli()] = s.State
	}
	return states, nil
}

// overrunVerdict is what such jobs have shown.
type overrunVerdict struct {
	verdict

	runs, cut, slots, skipped, busy, older int
	late                                   []time.Duration // from the start of the slot to the first line
}

// judgeRuns demands that each run ended well that began before a time, but for those of an older version, that no slot was run again
// after that, and that each slot without a run is shown as skipped.
func (v *overrunVerdict) judgeRuns(e evidence, shown map[int64]string, slots []slot, over time.Duration, older string, g *gauge) {
	begun, done := map[int64]time.Duration{}, map[int64]bool{}
	for _, l := range e.lines {
		switch l.event {
		case began:
			if done[l.start] {
				v.bad("%s: %s began at %v of the boot clock for the slot %d, which was done", l.workerType, l.instance, l.boot, l.start)
			}
			begun[l.start] = cmp.Or(begun[l.start], l.boot)
		case ended:
			done[l.start] = true
			v.runs++
		case stopped:
			switch {
			case l.instance == older:
				v.older++ // It knows no run that its slot is too short for.
			case l.boot >= over: // It was told to end.
			case g.stalled(l.boot-overrunFailover, l.boot) > overrunFailover/8, e.failedStore(l.instance, l.boot-overrunFailover, l.boot):
				v.busy++ // Its lease could not be extended in time.
			default:
				v.cut++
				v.bad("%s: the run of %s for the slot %d was cut at %v of the boot clock", l.workerType, l.instance, l.start, l.boot)
			}
		}
	}
	for _, s := range slots {
		start := s.start.UnixMilli()
		state := shown[start]
		v.slots++
		switch {
		case begun[start] > 0:
			v.late = append(v.late, begun[start]-s.begin)
			if state == "skipped" {
				v.bad("%s: the slot %d is shown as skipped, and was run", s.of.name, start)
			}
		case state == "skipped":
			v.skipped++
		case g.stalled(s.begin, s.finish) > overrunStart/4:
			v.busy++
		default:
			v.bad("%s: nobody ran the slot %d, and it is shown as %q", s.of.name, start, state)
		}
	}
}

// failedStore reports that the store has failed a worker in a stretch of time.
func (e evidence) failedStore(worker string, from, to time.Duration) bool {
	return slices.ContainsFunc(e.histories, func(h history) bool {
		return h.name == worker && slices.ContainsFunc(h.lives, func(l life) bool {
			return slices.ContainsFunc(l.said, func(s said) bool {
				return (s.Message == "store failed" || s.Message == "append outcome unknown") && s.boot > from && s.boot < to
			})
		})
	})
}

func (v *overrunVerdict) report() *report {
	if v.busy*5 > v.runs {
		v.bad("%d runs or slots show nothing, of %d runs", v.busy, v.runs)
	}
	r := v.newReport("Runs longer than their slots: %d worker types of %d workers, slots of %v, runs of %v slots", len(overruns), perType, overrunSlot, overruns)
	r.figure("runs that ended well", v.runs)
	r.figure("runs that were cut", v.cut)
	r.figure("slots", v.slots)
	r.figure("slots that were skipped, as inspect slots shows", v.skipped)
	r.figure("runs that were cut and slots that nobody began, excused by a busy machine or a store operation that failed", v.busy)
	r.row("runs of the older leasectl that its slot cut", v.older)
	r.row("from the start of the slot to the first line", "p50 "+quantile(sorted(v.late), 50), "most "+quantile(v.late, 100))
	return v.end(r, "Each run ended well, and each slot that began meanwhile is shown as skipped; never two at once, and tokens only grew.")
}
