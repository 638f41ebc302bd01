package doctor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

const seeWorkers = "see whether they died, or can't reach the store: leasectl inspect workers"

// judgeWorkers says which workers of the roster are missing, and which worker types have none at all.
func judgeWorkers(all []workerlease.Candidate, ledgers []ledger, err error) store.Finding {
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return skip(checkWorkers, "the store keeps no roster")
	case err != nil:
		return unread(checkWorkers, err)
	case len(all) == 0:
		return skip(checkWorkers, "nobody is in the roster: no worker was seen within 24 h that writes it")
	}
	present := map[string]int{}
	var gone []string
	there, remedy := 0, seeWorkers
	for _, w := range all {
		switch {
		case w.Phase == store.PhaseStopped:
		case w.Present:
			there++
			present[w.WorkerType]++
		default:
			text := fmt.Sprintf("%s of %s, last seen %s", named(w), w.WorkerType, stamp(w.Seen))
			if w.Holds {
				text += ", and its lease is in force"
				remedy = seeWorkers + "; leasectl release --force ends the lease of one that died"
			}
			gone = append(gone, text)
		}
	}
	var deserted []string
	for _, l := range ledgers {
		if present[l.name] == 0 && slices.ContainsFunc(all, func(w workerlease.Candidate) bool { return w.WorkerType == l.name }) {
			deserted = append(deserted, l.name)
		}
	}
	switch {
	case len(deserted) > 0:
		return warn(checkWorkers, "start a worker, or see whether those that were there reach the store: slots are missed", "nobody of the roster is left for %s", some(deserted))
	case len(gone) > 0:
		return warn(checkWorkers, remedy, "missing: %s", some(gone))
	}
	if there == len(all) {
		return ok(checkWorkers, "all %d are there", there)
	}
	return ok(checkWorkers, "%d of %d are there; the others have stopped", there, len(all))
}

// off is from how far on a worker's clock is named, beyond what the worker itself is uncertain of.
const off = 100 * time.Millisecond

// judgeClocks names the workers whose time of day is off.
func judgeClocks(all []workerlease.Candidate, err error) store.Finding {
	if err != nil || len(all) == 0 {
		return skip(checkClocks, "see workers")
	}
	var which []string
	n := 0
	for _, w := range all {
		if w.Phase == store.PhaseStopped || !w.Present {
			continue
		}
		n++
		if w.Offset.Abs() > w.Uncertainty.Abs()+off {
			which = append(which, fmt.Sprintf("that of %s is %s store time (±%s)", named(w), way(w.Offset), brief(w.Uncertainty.Abs())))
		}
	}
	if len(which) > 0 {
		return warn(checkClocks, "set these machines' clocks (NTP): no lease depends on them, but logs and time stamps of jobs do", "%s", some(which))
	}
	return ok(checkClocks, "those of %d workers are right", n)
}

// named is a worker's name, which may hold anything.
func named(w workerlease.Candidate) string {
	name := display.Clip(display.Line(w.InstanceID), 64)
	if w.Host != "" {
		name += " on " + display.Clip(display.Line(w.Host), 64)
	}
	return name
}
