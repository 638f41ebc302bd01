//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Why nobody worked in a slot.
const (
	noWorker      = "no live worker"
	noneRunning   = "all workers stopped or dead"
	storeDown     = "store down, locked or cut off (others stopped or dead)"
	claimedKilled = "claimed, then leasectl killed before the command began"
	claimedEnded  = "claimed, then ended in order and released"
	claimedStop   = "claimed, then stopped over the start"
	claimedCut    = "claim stored, but its holder couldn't learn of it"
	claimedBusy   = "claimed by a worker whose last command was not gone"
	claimedLate   = "claimed with too little left of the slot for a first line"
	claimedUnsure = "claimed, but store time was uncertain for too long"
	commandKilled = "command or guard killed or stopped before the first line"
	tooBusy       = "machine busy: the harness itself got no processor for long"
	unexplained   = "unexplained"
)

// The reasons by the kind of the fault that struck a worker. While its guard is
// stopped, the last command isn't gone, so the worker claims nothing.
var (
	noClaim = map[kind]string{
		stopLeasectl: noneRunning, stopBoth: noneRunning, stopTree: noneRunning, stopGuard: noneRunning,
		netLatency: storeDown, netBlackhole: storeDown, netReset: storeDown, netDown: storeDown,
		killServer: storeDown, stopServer: storeDown, lockFile: storeDown, killWriter: storeDown,
	}
	noStart = map[kind]string{
		stopLeasectl: claimedStop, stopBoth: claimedStop, stopTree: claimedStop, stopGuard: claimedBusy,
		killGuard: commandKilled, killCommand: commandKilled, stopCommand: commandKilled,
	}
)

// slot is one slot of a worker type.
type slot struct {
	of            workerType
	start, end    time.Time     // store time
	begin, finish time.Duration // the same by the boot clock
}

// slotsOf are the slots of a worker type that lie in a stretch of the boot clock.
func slotsOf(t workerType, from, to time.Duration, zero time.Time) (found []slot) {
	start := zero.Add(from).Truncate(t.interval)
	if start.Before(zero.Add(from).Add(-ms)) {
		start = start.Add(t.interval)
	}
	for ; ; start = start.Add(t.interval) {
		s := slot{of: t, start: start, end: start.Add(t.interval), begin: start.Sub(zero), finish: start.Add(t.interval).Sub(zero)}
		if s.finish > to {
			return found
		}
		found = append(found, s)
	}
}

// claims is when the claims for a slot open, by the boot clock.
func (s slot) claims() time.Duration { return s.begin - s.of.interval/4 }

// recovery is how long a worker may need after a fault until its claims get through:
// its own backoff, and a driver that looks for its server. It claims the rest of the
// slot then.
const recovery = time.Second

// missed explains why nobody worked in a slot, with a detail if that is not known.
func (e evidence) missed(s slot) (class, detail string) {
	for _, r := range e.records {
		if r.Kind == store.KindGrant && r.SlotStart.Equal(s.start) {
			if class, detail = e.granted(s, r); class != unexplained {
				return class, detail
			}
		}
	}
	if class == unexplained {
		return class, detail
	}
	count := map[string]int{}
	var fit []string
	for _, h := range e.histories {
		excuse := e.excuse(h, s)
		count[excuse]++
		if excuse == "" {
			fit = append(fit, h.name)
		}
	}
	switch n := len(e.histories); {
	case len(fit) > 0 && e.starved(s):
		return tooBusy, ""
	case len(fit) > 0:
		return unexplained, "could have claimed: " + strings.Join(fit, ", ")
	case count[noWorker] == n:
		return noWorker, ""
	case count[noWorker]+count[noneRunning] == n:
		return noneRunning, ""
	}
	return storeDown, ""
}

// starved reports that this process was woken so late around a slot that others must
// have been, too.
func (e evidence) starved(s slot) bool {
	return slices.ContainsFunc(e.stalls, func(t stall) bool { return t.late > 60*ms && t.at > s.claims() && t.at-t.late < s.finish })
}

// excuse is why a worker didn't claim a slot; empty without a reason. A hindrance that ended early in the slot is none: half of a slot is worth
// claiming.
func (e evidence) excuse(h history, s slot) (why string) {
	if !slices.ContainsFunc(h.lives, func(l life) bool { return l.from() < s.claims() && l.until() > s.begin }) {
		return noWorker
	}
	var until time.Duration
	hinder := func(by string, to time.Duration) {
		if after(to, recovery) > s.begin+s.of.interval/2 && (why == "" || to > until) {
			why, until = by, to
		}
	}
	for _, k := range e.strikes {
		by := noClaim[k.Kind]
		if by != "" && k.Begin < s.begin && (k.Worker == h.name || k.Worker == "" && by == storeDown) {
			hinder(by, k.End)
		}
	}
	if at := e.complained(h, s); at != 0 {
		hinder(storeDown, at)
	}
	return why
}

func after(t, d time.Duration) time.Duration {
	if t > endless-d {
		return endless
	}
	return t + d
}

// complained is when a worker last logged that it couldn't reach the store when it
// should have claimed a slot, or 0: because a leasectl was stopped while it held the
// file's lock, for example.
func (e evidence) complained(h history, s slot) (last time.Duration) {
	for _, l := range h.lives {
		for _, line := range l.said {
			trouble := line.Message == "store failed" || line.Message == "append outcome unknown"
			if trouble && line.boot > s.begin-s.of.interval && line.boot < s.finish {
				last = line.boot
			}
		}
	}
	return last
}

// struck is the reason by the first fault that struck a worker in a stretch of time.
func (e evidence) struck(worker string, from, to time.Duration, reasons map[kind]string) string {
	for _, k := range e.strikes {
		if k.Worker == worker && k.Begin <= to && after(k.End, wakeUp) >= from && reasons[k.Kind] != "" {
			return reasons[k.Kind]
		}
	}
	return ""
}

// granted explains why the holder of a slot didn't begin to work.
func (e evidence) granted(s slot, r store.Record) (class, detail string) {
	i := slices.IndexFunc(e.histories, func(h history) bool { return h.name == r.InstanceID })
	if i < 0 {
		return unexplained, fmt.Sprintf("granted to %s, which is not of this run", r.InstanceID)
	}
	h := e.histories[i]
	for _, l := range h.lives {
		if l.pid == r.Worker.PID && l.struck != 0 && l.struck < s.finish {
			if l.how == endLeasectl {
				return claimedEnded, ""
			}
			return claimedKilled, ""
		}
	}
	if class = e.struck(h.name, s.claims(), s.finish, noStart); class != "" {
		return class, ""
	}
	var text []string
	for _, line := range h.about(s.start) {
		switch {
		case line.Message == "slot missed" && line.Why == "overrun":
			return claimedBusy, ""
		case line.Message == "slot missed" && line.Why == "too late":
			return claimedUnsure, ""
		case line.Message == "command not started", line.Reason == "stopped at the deadline":
			return claimedLate, ""
		}
		text = append(text, strings.Join(strings.Fields(line.Message+" "+line.Why+" "+line.Reason+" "+line.Err), " "))
	}
	switch {
	case e.complained(h, s) != 0:
		return claimedCut, ""
	case e.starved(s):
		return tooBusy, ""
	}
	return unexplained, fmt.Sprintf("granted to %s (pid %d, token %d), which logged: %q", r.InstanceID, r.Worker.PID, r.Token, text)
}
