//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/internal/audit"
	"github.com/slotlease/slotlease/store"
)

// evidence is what a run has left behind of one worker type.
type evidence struct {
	of        workerType
	zero      time.Time     // store time at 0 of the boot clock,
	tolerance time.Duration // known to within this
	lines     []line        // of its commands, in the order in which they were written
	works     []*work       // the same by token
	records   []store.Record
	histories []history
	strikes   []*strike
	stalls    []stall
}

// judge applies the rules of every scenario: the ledger is valid, and commands stay
// within their windows. It returns what was outside of them and is excused by a fault.
func (v *verdict) judge(e evidence) (expected []outside) {
	for _, text := range audit.Ledger(e.records) {
		v.bad("ledger: %s: %s", e.of.name, text)
	}
	expected, late, bugs := judgeOutside(checkWorks(e.works, windows(e.records), e.zero, e.tolerance), e.strikes)
	for _, o := range late {
		v.notes = append(v.notes, fmt.Sprintf("killed late: %v", o))
	}
	for _, o := range bugs {
		v.bad("outside its window: %v", o)
	}
	return expected
}

// judgeTurns applies the rules of the scenarios in which leasectl always can end its
// command: one command at a time.
func (v *verdict) judgeTurns(e evidence) []*turn {
	v.judge(e)
	turns, wrong := turnsOf(e.lines)
	v.wrong = append(v.wrong, wrong...)
	return turns
}

// judgeLives checks the logs and the ends of the leasectl processes. One that was told
// to end after the last fault must do so in order; before that, it is a note.
func (v *verdict) judgeLives(histories []history, lastFault time.Duration) {
	for _, h := range histories {
		for _, l := range h.lives {
			if l.how == endLeasectl && !l.cleanly {
				text := fmt.Sprintf("leasectl of %s (pid %d), told to end at %v of the boot clock: %s", h.name, l.pid, l.struck, l.result)
				if l.struck > lastFault {
					v.wrong = append(v.wrong, text)
				} else {
					v.notes = append(v.notes, text)
				}
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
