package workerlease

import (
	"slices"
	"strconv"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Standing is what a worker is at a moment, by its newest word in the roster and by the ledger. All that shows
// workers goes by it. Its texts don't change. A phase that this version doesn't know is its own, quoted.
type Standing string

// The standings.
const (
	// Holds: the lease is the worker's, or its group's, and there is work to do under it: see history.Entry.Holds.
	Holds Standing = "holds"
	// Contends: it contends for the next slot.
	Contends Standing = "candidate"
	// StandsBy: another worker has the slot, which it takes over if that dies.
	StandsBy Standing = "standby"
	// Unfit: Options.Eligible finds it unfit to lead.
	Unfit Standing = "not eligible"
	// Steps: its code failed in slot after slot, and others go first.
	Steps Standing = "stepping back"
	// Left: it has stopped, and is remembered for its failures.
	Left Standing = "stopped"
	// Gone: it has died, or can't reach the store. It has not been seen when it should have been: see IsPresent.
	// Or its lease has ended without a word, and it has not been seen since.
	Gone Standing = "gone"
)

// There reports that the worker is there: it is neither gone nor stopped.
func (s Standing) There() bool { return s != Gone && s != Left }

// StandingOf is the standing of a worker at a store time, by its presence and by what history.Read makes at that time of the
// newest records of its worker type.
func StandingOf(p store.Presence, entries []history.Entry, now time.Time) Standing {
	p = heard(p, entries)
	switch {
	case p.Phase == store.PhaseStopped:
		return Left
	case !IsPresent(p, now) || isSilent(p, entries):
		return Gone
	case holdsAt(p, entries, now):
		return Holds
	case p.Ineligible != "":
		return Unfit
	}
	switch p.Phase {
	case store.PhaseHolder:
		return Contends // Its lease has ended since.
	case store.PhaseCandidate, store.PhaseStandby, store.PhaseStepping, store.PhaseStopped:
		return Standing(p.Phase)
	}
	return Standing(strconv.Quote(string(p.Phase))) // It is of another version or program, which may call it "holds".
}

// heard is a presence as of the newest record of its worker, if that is newer: when the store is back after an outage, a worker may
// work for a while before it renews its presence.
func heard(p store.Presence, entries []history.Entry) store.Presence {
	for _, e := range entries {
		if later := e.Written.Sub(p.Seen); later > 0 && isBy(e.Record, p) {
			p.Seen, p.Next = e.Written, p.Next.Add(later)
		}
	}
	return p
}

// holdsAt reports that the lease at a time is a worker's or its group's, as far as names, host and process tell.
func holdsAt(p store.Presence, entries []history.Entry, now time.Time) bool {
	holder, held := history.Holder(entries, now)
	return held && p.Phase != store.PhaseStopped && holds(holder.Record, p)
}

// isSilent reports that the newest lease of a worker has ended without a word before the end of its slot or its job,
// and that the worker has not been seen since.
func isSilent(p store.Presence, entries []history.Entry) bool {
	for _, e := range slices.Backward(entries) {
		if e.Record.Kind == store.KindGrant && e.State != history.Skipped && e.Record.Group == "" && holds(e.Record, p) {
			return e.Silent() && !p.Seen.After(e.Window.End)
		}
	}
	return false
}
