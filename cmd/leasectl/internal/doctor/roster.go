package doctor

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

const seeWorkers = "see whether they died, or can't reach the store: leasectl inspect workers"

// judgeWorkers says which workers of the roster are missing, and which worker types have none at all, as far as they can be listed.
func judgeWorkers(all []workerlease.Candidate, unlisted error, ledgers []ledger, err error) store.Finding {
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return skip(checkWorkers, "the store keeps no roster")
	case errors.Is(err, store.ErrRefused) && !slices.ContainsFunc(ledgers, func(l ledger) bool { return l.err != nil }):
		return warn(checkWorkers, "until that is done, nothing is known of the workers: no lease depends on it", "%v", err)
	case err != nil:
		return unread(checkWorkers, err)
	case len(all) == 0 && unlisted == nil:
		return skip(checkWorkers, "nobody is in the roster: no worker was seen within 24 h that writes it")
	}
	present, held := map[string]int{}, map[string]bool{}
	for _, w := range all {
		held[w.WorkerType] = held[w.WorkerType] || w.Holds
	}
	var gone, forgot []string
	there, remedy := 0, seeWorkers
	for _, w := range all {
		switch {
		case w.Phase == store.PhaseStopped:
		case w.Present:
			there++
			present[w.WorkerType]++
			if inspect.SaysLost(w.Presence) && !held[w.WorkerType] {
				forgot = append(forgot, fmt.Sprintf("%s of %s", named(w), w.WorkerType))
			}
		default:
			text := fmt.Sprintf("%s of %s, last seen %s", named(w), w.WorkerType, stamp(w.Seen))
			if w.Holds {
				text += ", and its lease is in force"
				remedy = seeWorkers + "; leasectl release --force ends the lease of one that died"
			}
			gone = append(gone, text)
		}
	}
	mixed := mixedOf(all, present)
	deserted := desertedOf(all, ledgers, present)
	switch {
	case len(forgot) > 0:
		return warn(checkWorkers, "find out whether the store was flushed, restored, or failed over to a copy that lacked records; the workers go on by themselves. If nobody works any more, leasectl override ends their wait, or their restart if no record is left",
			"the store has lost records that these workers had read, or may have, and they claimed nothing for that: %s", some(forgot))
	case len(mixed) > 0:
		return warn(checkWorkers, "give each command a worker type of its own, or only one of them is run in each slot", "they run different commands under one worker type: %s", some(mixed))
	case len(deserted) > 0:
		return warn(checkWorkers, "start a worker, or see whether those that were there reach the store: slots are missed", "nobody of the roster is left for %s", some(deserted))
	case len(gone) > 0:
		return warn(checkWorkers, remedy, "missing: %s", some(gone))
	case unlisted != nil:
		return warn(checkWorkers, "until that is done, nothing is known of these workers", "%v", unlisted)
	}
	return allThere(there, len(all))
}

// allThere is the finding that nobody is missing.
func allThere(there, all int) store.Finding {
	if there == all {
		return ok(checkWorkers, "all %d are there", there)
	}
	return ok(checkWorkers, "%d of %d are there; the others have stopped", there, all)
}

// mixedOf are what workers that are there do, of types for which they say different things.
func mixedOf(all []workerlease.Candidate, present map[string]int) (works []string) {
	for _, name := range slices.Sorted(maps.Keys(present)) {
		var there []store.Presence
		for _, w := range all {
			if w.WorkerType == name && w.Present {
				there = append(there, w.Presence)
			}
		}
		if of := inspect.WorksOf(there); len(of) > 1 {
			works = append(works, name+" has "+strings.Join(of, " and "))
		}
	}
	return works
}

// desertedOf are the worker types of ledgers that the roster has workers of, and of which none is there.
func desertedOf(all []workerlease.Candidate, ledgers []ledger, present map[string]int) (names []string) {
	for _, l := range ledgers {
		if present[l.name] == 0 && slices.ContainsFunc(all, func(w workerlease.Candidate) bool { return w.WorkerType == l.name }) {
			names = append(names, l.name)
		}
	}
	return names
}

// off is from how far on a worker's clock is named, beyond what the worker itself is uncertain of.
const off = 100 * time.Millisecond

// judgeClocks names the workers whose time of day is off.
func judgeClocks(all []workerlease.Candidate, err error) store.Finding {
	if err != nil || len(all) == 0 {
		return skip(checkClocks, "see workers")
	}
	var which []string
	n, hosts := 0, map[string]bool{}
	least, most := time.Duration(math.MaxInt64), time.Duration(math.MinInt64) // Clocks agree that may show the same, as far as is known.
	for _, w := range all {
		if w.Phase == store.PhaseStopped || !w.Present {
			continue
		}
		n++
		hosts[w.Host] = true
		least, most = min(least, w.Offset+w.Uncertainty.Abs()), max(most, w.Offset-w.Uncertainty.Abs())
		if w.Offset.Abs() > w.Uncertainty.Abs()+off {
			which = append(which, fmt.Sprintf("that of %s is %s store time (±%s)", named(w), way(w.Offset), brief(w.Uncertainty.Abs())))
		}
	}
	switch {
	case len(hosts) > 1 && len(which) == n && most-least < off:
		return warn(checkClocks, "these machines agree, so look at the clock of the store first: its server should run NTP, for slots follow it", "%s", some(which))
	case len(which) > 0:
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
