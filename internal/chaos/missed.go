//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Why nobody worked in a slot, or not to its end.
const (
	noWorker      = "no live worker"
	noneRunning   = "all workers stopped or dead"
	storeDown     = "store down, locked or cut off (others stopped or dead)"
	claimedKilled = "claimed, then leasectl killed before the command began"
	claimedEnded  = "claimed, then ended in order and released"
	claimedStop   = "claimed, then stopped over the start"
	claimedCut    = "claim stored, but its holder couldn't learn of it"
	claimedBusy   = "claimed by one whose last command was not gone"
	claimedLate   = "claimed with too little left of the slot for a first line"
	claimedUnsure = "claimed, but store time was uncertain for too long"
	commandKilled = "command or guard killed or stopped before the first line"
	tooBusy       = "machine busy: the harness itself got no processor for long"
	unexplained   = "unexplained"

	cutKilled  = "leasectl killed"
	cutEnded   = "leasectl ended in order"
	cutBelow   = "command or guard killed"
	cutStopped = "command stopped"
	cutUnsure  = "store time uncertain after slow replies"
)

// slot is one slot of a worker type.
type slot struct {
	of         workerType
	start, end time.Time // store time
	begin      time.Duration
	finish     time.Duration // the same by the boot clock
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

// recovery is how long a worker may need after a fault until its claims get
// through: its own backing off, and a driver that looks for its server. It claims
// what is then left of the slot.
const recovery = time.Second

// missed says why nobody worked in a slot.
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
	dead, still := 0, 0
	var fit, why []string
	for _, h := range e.histories {
		excuse, until := e.excuse(h, s)
		if until == endless {
			why = append(why, fmt.Sprintf("%s: %s", h.name, excuse))
		} else {
			why = append(why, fmt.Sprintf("%s: %s, until %v after the start", h.name, excuse, (until-s.begin).Round(ms)))
		}
		switch excuse {
		case noWorker:
			dead++
		case noneRunning:
			still++
		case storeDown:
		default:
			fit = append(fit, h.name)
		}
	}
	n := len(e.histories)
	switch {
	case len(fit) > 0 && e.starved(s):
		return tooBusy, strings.Join(why, "; ")
	case len(fit) > 0:
		return unexplained, "could have claimed: " + strings.Join(fit, ", ")
	case dead == n:
		return noWorker, strings.Join(why, "; ")
	case dead+still == n:
		return noneRunning, strings.Join(why, "; ")
	}
	return storeDown, strings.Join(why, "; ")
}

// starved reports that this process was woken so late around a slot that others must
// have been, too.
func (e evidence) starved(s slot) bool {
	return slices.ContainsFunc(e.stalls, func(t stall) bool { return t.late > 60*ms && t.at > s.claims() && t.at-t.late < s.finish })
}

// claims is when the claims for a slot open, by the boot clock.
func (s slot) claims() time.Duration { return s.begin - s.of.interval/4 }

// excuse is why a worker didn't claim a slot, and until when that held; empty if
// there is no reason. What hindered it only early in the slot is none: half of a
// slot is worth claiming.
func (e evidence) excuse(h history, s slot) (why string, until time.Duration) {
	alive := slices.ContainsFunc(h.lives, func(l life) bool { return l.from() < s.claims() && l.until() > s.begin })
	if !alive {
		return noWorker, endless
	}
	hinder := func(by string, to time.Duration) {
		if after(to, recovery) > s.begin+s.of.interval/2 && (why == "" || to > until) {
			why, until = by, to
		}
	}
	for _, k := range e.strikes {
		mine := k.Worker == h.name && k.Begin < s.begin
		switch k.Kind {
		case stopLeasectl, stopBoth, stopTree:
			if mine {
				hinder(noneRunning, k.End)
			}
		case stopGuard:
			// Its last command isn't gone, so it claims nothing.
			if mine {
				hinder(noneRunning, k.End)
			}
		case netLatency, netBlackhole, netReset, netDown, killServer, stopServer, lockFile, killWriter:
			if mine || k.Worker == "" && k.Begin < s.begin {
				hinder(storeDown, k.End)
			}
		default:
		}
	}
	if at := e.complained(h, s); at != 0 {
		hinder(storeDown, at)
	}
	return why, until
}

func after(t, d time.Duration) time.Duration {
	if t > endless-d {
		return endless
	}
	return t + d
}

// complained is when a worker said last that it couldn't reach the store when it
// should have claimed a slot, or 0: a leasectl that was stopped while it held the
// file's lock, say.
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

// uncertainty is how well a worker knew the store's time at a moment.
func (e evidence) uncertainty(worker string, at time.Duration) (newest time.Duration) {
	for _, h := range e.histories {
		for _, l := range h.lives {
			for _, line := range l.said {
				if d, err := time.ParseDuration(line.Uncertainty); err == nil && h.name == worker && line.boot <= at {
					newest = d
				}
			}
		}
	}
	return newest
}

// granted says why the holder of a slot didn't begin to work.
func (e evidence) granted(s slot, r store.Record) (class, detail string) {
	i := slices.IndexFunc(e.histories, func(h history) bool { return h.name == r.InstanceID })
	if i < 0 {
		return unexplained, fmt.Sprintf("granted to %s, who is not of the workerTypes", r.InstanceID)
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
	for _, k := range e.strikes {
		if k.Worker != h.name || k.Begin > s.finish || after(k.End, wakeUp) < s.claims() {
			continue
		}
		switch k.Kind {
		case stopLeasectl, stopBoth, stopTree:
			return claimedStop, ""
		case stopGuard:
			return claimedBusy, ""
		case killGuard, killCommand, stopCommand:
			return commandKilled, ""
		default:
		}
	}
	var text []string
	for _, line := range h.about(s.start) {
		switch {
		case line.Message == "slot missed" && line.Why == "overrun":
			return claimedBusy, ""
		case line.Message == "slot missed" && line.Why == "too late":
			return claimedUnsure, ""
		case strings.Contains(line.Message, "command not started"), strings.Contains(line.Message, "stopped at the deadline"):
			return claimedLate, ""
		}
		text = append(text, strings.TrimSpace(line.Message+" "+line.Why+" "+line.Err))
	}
	if e.complained(h, s) != 0 {
		return claimedCut, ""
	}
	if e.starved(s) {
		return tooBusy, ""
	}
	return unexplained, fmt.Sprintf("granted to %s (pid %d, token %d), who said: %q", r.InstanceID, r.Worker.PID, r.Token, text)
}

// cut says why work ended before its time; empty if it didn't. A command may go at
// SIGTERM, and is killed a little before the window ends.
func (e evidence) cut(w *work, s slot) (class, detail string) {
	if w.quit {
		return "", ""
	}
	short := s.finish - w.last
	allowed := grace + margin + killTime(s.of.interval) + 60*ms
	if short < allowed {
		return "", ""
	}
	for _, h := range e.histories {
		for _, l := range h.lives {
			if h.name == w.instance && l.struck > 0 && l.struck >= w.first-wakeUp && l.struck <= s.finish {
				if l.how == endLeasectl {
					return cutEnded, ""
				}
				return cutKilled, ""
			}
		}
	}
	class = unexplained
	for _, k := range e.strikes {
		if k.Worker != w.instance || k.Begin > s.finish || after(k.End, wakeUp) < w.first {
			continue
		}
		switch k.Kind {
		case killGuard, killCommand:
			return cutBelow, ""
		case stopCommand, stopTree:
			class = cutStopped
		default:
		}
	}
	if class == unexplained && short < allowed+2*e.uncertainty(w.instance, w.last) {
		class = cutUnsure
	}
	if class == unexplained && e.starved(s) {
		class = tooBusy
	}
	if class == unexplained {
		detail = fmt.Sprintf("%s (token %d) wrote its last line %v before the end", w.instance, w.token, short.Round(ms))
	}
	return class, detail
}

// killTime is how long before the margin leasectl begins to kill.
func killTime(interval time.Duration) time.Duration { return min(interval/50, 100*ms) }
