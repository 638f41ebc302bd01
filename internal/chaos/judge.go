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
// time, and stays within its window. What the faults excuse is kept.
func (v *verdict) judge(e evidence) {
	for _, text := range audit.Ledger(e.records) {
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
		v.notes = append(v.notes, fmt.Sprintf("killed late: %v", o))
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
