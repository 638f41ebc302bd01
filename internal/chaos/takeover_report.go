//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
)

// summary is what the tries of one kind have shown.
type summary struct {
	tries, within int
	took          []time.Duration // from the death to the standby's first line; sorted
	idle          []time.Duration // from the one's last line to the other's first
	least         time.Duration   // what was left to the bound
	bounds        []time.Duration // sorted
}

func (v *takeoverVerdict) summary(how kind) (s summary) {
	s.least = time.Hour
	for _, t := range v.of(how) {
		s.tries++
		if v.verdictOf(t) == inBound {
			s.within++
		}
		s.took, s.idle = append(s.took, t.took()), append(s.idle, t.first-t.last)
		s.least, s.bounds = min(s.least, v.bound.of(t)-t.took()), append(s.bounds, v.bound.of(t))
	}
	slices.Sort(s.idle)
	slices.Sort(s.bounds)
	return s
}

// bound is the least and the largest bound of the tries.
func (s summary) bound() string { return quantile(s.bounds, 0) + " to " + quantile(s.bounds, 100) }

// busyTries are those that the machine was too busy for.
func (v *takeoverVerdict) busyTries() (n int) {
	for _, t := range v.tries {
		if v.verdictOf(t) == tooBusyToTell {
			n++
		}
	}
	return n
}

func (v *takeoverVerdict) print(to io.Writer) {
	p := newPaper(to)
	p.title(fmt.Sprintf("Takeovers: slots of %v, failover within %v, lead %v, a standby of the next priority", takeoverSlot, takeoverFailover, takeoverLead))
	p.row("  leasectl of the holder", "tries", "within the bound", "p50", "p99", "longest", "the bound", "least left to it")
	for _, how := range []kind{killLeasectl, endLeasectl} {
		s := v.summary(how)
		p.row("  "+string(how), s.tries, s.within, quantile(s.took, 50), quantile(s.took, 99), quantile(s.took, 100), s.bound(), s.least.Round(ms))
		p.row("    without a line", "", "", quantile(s.idle, 50), quantile(s.idle, 99), quantile(s.idle, 100))
	}
	p.row("  the machine was too busy to tell", v.busyTries())
	uncertain := time.Duration(0)
	for _, t := range v.tries {
		uncertain = max(uncertain, t.uncertainty)
	}
	p.title("The bound, from the death to the first line of the standby's command")
	p.row("  failover", takeoverFailover)
	p.row("  turn of the second priority", takeoverTurn().Round(ms))
	p.row("  four times the uncertainty of store time", "at most "+(4*uncertain).Round(ms/10).String())
	p.row("  two requests", v.bound.requests.Round(ms/10), "p50 "+quantile(v.requests, 50), "p99 "+quantile(v.requests, 99), "most "+quantile(v.requests, 100))
	p.row("  starting a command", v.bound.start.Round(ms/10), "p50 "+quantile(v.starts, 50), "p99 "+quantile(v.starts, 99), "most "+quantile(v.starts, 100))
	p.row("  towards the end of a slot", "and "+takeoverLead.String())
	p.row("  the machine: woken late by", "", "", "p99 "+quantile(v.stalls, 99), "most "+quantile(v.stalls, 100))
	p.end(v.wrong, "Somebody worked again within the bound, never two at once, and tokens only grew.")
}

func (v *takeoverVerdict) failed() bool { return len(v.wrong) > 0 }

func (v *takeoverVerdict) proof() figures.Proof {
	killed, ended := v.summary(killLeasectl), v.summary(endLeasectl)
	return figures.Proof{
		Name:    "takeover-" + v.store,
		Command: fmt.Sprintf("make takeover STORE=%s TRIES=%d", v.store, v.settings.tries),
		Figures: []figures.Figure{
			{What: "leasectl processes killed while they held a lease", Value: strconv.Itoa(killed.tries)},
			{What: "of them succeeded within the bound", Value: strconv.Itoa(killed.within)},
			{What: "the bound, by the moment of the death", Value: killed.bound()},
			{What: "which is", Value: v.bound.String()},
			{What: "from the death to the next one's first line, median", Value: quantile(killed.took, 50)},
			{What: "p99 of that", Value: quantile(killed.took, 99)},
			{What: "longest of that", Value: quantile(killed.took, 100)},
			{What: "leasectl processes ended in order", Value: strconv.Itoa(ended.tries)},
			{What: "of these succeeded within the bound", Value: strconv.Itoa(ended.within)},
			{What: "their bound", Value: ended.bound()},
			{What: "from the signal to the next one's first line, median", Value: quantile(ended.took, 50)},
			{What: "p99 from the signal", Value: quantile(ended.took, 99)},
			{What: "longest from the signal", Value: quantile(ended.took, 100)},
			{What: "tries that the machine was too busy for", Value: strconv.Itoa(v.busyTries())},
			{What: "things that were wrong", Value: strconv.Itoa(len(v.wrong))},
		},
	}
}
