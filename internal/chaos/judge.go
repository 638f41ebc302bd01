//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// evidence is what a run has left behind of one worker type.
type evidence struct {
	chronicle

	of        workerType
	zero      time.Time     // store time at 0 of the boot clock,
	tolerance time.Duration // known to within this
	records   []store.Record
	histories []history
	strikes   []*strike
	stalls    []stall
}

// judge applies the rules of every scenario: the ledger is valid, one command works at a
// time, and stays within its window, and leasectl ends in order after the last fault. What the faults excuse is kept.
func (v *verdict) judge(e evidence, lastFault time.Duration) {
	v.judgeLives(e.histories, lastFault)
	for _, text := range verify.Strict(e.records) {
		v.bad("ledger: %s: %s", e.of.name, text)
	}
	expected, overlaps := judgeOverlaps(e.overlaps, e.strikes)
	v.overlaps = append(v.overlaps, expected...)
	for _, o := range overlaps {
		v.bad("overlap: %v", o)
	}
	excused, late, bugs := judgeOutside(checkTurns(e.turns, windows(e.records), e.zero, e.tolerance), e.strikes)
	v.outside += len(excused)
	for _, o := range late {
		v.note("killed late: %v", o)
	}
	for _, o := range bugs {
		v.bad("outside its window: %v", o)
	}
}

// judgeLives checks the logs and the ends of the leasectl processes. One that was told
// to end after the last fault must do so in order; before that, it is a note.
func (v *verdict) judgeLives(histories []history, lastFault time.Duration) {
	for _, h := range histories {
		for _, l := range h.lives {
			if l.how == endLeasectl && !l.cleanly {
				say := v.note
				if l.struck > lastFault {
					say = v.bad
				}
				say("leasectl of %s (pid %d), told to end at %v of the boot clock: %s", h.name, l.pid, l.struck, l.result)
			}
			for _, s := range l.said {
				text := s.Message
				if s.Level == "error" {
					text += " " + s.Err
				}
				if slices.ContainsFunc([]string{"panic", "could not be killed", "internal error"}, func(alarm string) bool { return strings.Contains(text, alarm) }) {
					v.bad("leasectl of %s (pid %d) said: %s %s", h.name, l.pid, s.Message, s.Err)
				}
			}
		}
	}
}

// wakeUp is how long a guard may take, once it runs again, to kill its command, on
// a machine that is busy.
const wakeUp = 500 * ms

// helpless reports whether, throughout a stretch of time, neither a guard nor its
// leasectl could end the work: both were stopped, or the one was killed while the other
// was stopped. A guard that is stopped alone doesn't count, because its leasectl acts
// for it.
func helpless(strikes []*strike, guard int, begin, end time.Duration) bool {
	for {
		i := slices.IndexFunc(strikes, func(s *strike) bool {
			until := after(s.End, wakeUp)
			return guard != 0 && s.guard == guard && slices.Contains([]kind{stopBoth, stopTree, killAbove}, s.Kind) && s.Begin <= begin && (until >= end || until > begin)
		})
		if i < 0 {
			return false
		}
		if begin = after(strikes[i].End, wakeUp); begin >= end {
			return true
		}
	}
}

// judgeOverlaps separates overlaps that nothing could prevent from bugs.
func judgeOverlaps(overlaps []*overlap, strikes []*strike) (expected, bugs []*overlap) {
	for _, o := range overlaps {
		if helpless(strikes, o.guard, o.first, o.last) {
			expected = append(expected, o)
		} else {
			bugs = append(bugs, o)
		}
	}
	return expected, bugs
}

func (o *overlap) String() string {
	return fmt.Sprintf("%s: %v wrote %d lines from %v to %v, when %v had begun", o.workerType, o.turn, o.lines, o.first, o.last, o.newer)
}

// unfenced reports that the fence was never asked although commands overlapped for
// long: then it proves nothing.
func unfenced(expected []*overlap, refused int) bool {
	var long time.Duration
	for _, o := range expected {
		if o.role == asCommand {
			long += o.last - o.first
		}
	}
	return long > 10*writeEvery && refused == 0
}

// windows are the grants of a ledger by token, with their extensions, shortened by
// their releases.
func windows(records []store.Record) map[int64]store.Record {
	found := map[int64]store.Record{}
	for _, r := range records {
		switch r.Kind {
		case store.KindGrant:
			if g, extends := found[r.Token]; extends && g.Claim == r.Claim {
				r.WindowStart = g.WindowStart
			}
			found[r.Token] = r
		case store.KindRelease:
			if g, ok := found[r.Token]; ok && r.WindowStart.Before(g.WindowEnd) {
				g.WindowEnd = r.WindowStart
				found[r.Token] = g
			}
		default:
		}
	}
	return found
}

// outside is a turn before or after its window, or without one.
type outside struct {
	*turn

	early, late time.Duration
	granted     bool
}

// checkTurns finds the turns that were not inside their windows. zero is store
// time at 0 of the boot clock, known to within tolerance.
func checkTurns(turns []*turn, granted map[int64]store.Record, zero time.Time, tolerance time.Duration) (found []outside) {
	for _, t := range turns {
		g, ok := granted[t.token]
		if !ok || g.InstanceID != t.instance {
			found = append(found, outside{turn: t})
			continue
		}
		o := outside{turn: t, granted: true}
		o.early = max(0, g.WindowStart.Sub(zero.Add(t.first))-tolerance)
		o.late = max(0, zero.Add(t.last).Sub(g.WindowEnd)-tolerance)
		if o.early > 0 || o.late > 0 {
			found = append(found, o)
		}
	}
	return found
}

// busy is how late a guard may be on a machine that is busy, as long as no other
// command has begun: that would be an overlap.
const busy = 250 * ms

// judgeOutside separates work outside of its window that nothing could prevent, work
// that was only a little late, and bugs. Nothing excuses work that began early, or without a grant.
func judgeOutside(found []outside, strikes []*strike) (expected, late, bugs []outside) {
	for _, o := range found {
		switch {
		case !o.granted || o.early > 0:
			bugs = append(bugs, o)
		case helpless(strikes, o.guard, o.last-o.late, o.last):
			expected = append(expected, o)
		case o.late <= busy:
			late = append(late, o)
		default:
			bugs = append(bugs, o)
		}
	}
	return expected, late, bugs
}

func (o outside) String() string {
	if !o.granted {
		return fmt.Sprintf("%s: %v was not granted its token", o.workerType, o.turn)
	}
	return fmt.Sprintf("%s: %v began %v before its window and went on for %v after it", o.workerType, o.turn, o.early, o.late)
}
