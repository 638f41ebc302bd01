//go:build linux

package main

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

// rollingVerdict is what deployments have shown.
type rollingVerdict struct {
	verdict

	replaced                int // workers
	jobs, lost, twice, late int // slots over whose start a job was deployed, and what was wrong with them
	cut                     int // attempts that the deployment ended
	leaders                 int
	busy                    int             // what shows nothing, since the machine was too busy
	begun, gaps             []time.Duration // from the boundary to the first attempt; without a leader
}

// add adds what another deployment has shown.
func (v *rollingVerdict) add(o rollingVerdict) {
	v.wrong, v.notes = append(v.wrong, o.wrong...), append(v.notes, o.notes...)
	if o.busy > 0 {
		v.busy++
		return
	}
	v.replaced += o.replaced
	v.jobs, v.lost, v.twice, v.late, v.cut = v.jobs+o.jobs, v.lost+o.lost, v.twice+o.twice, v.late+o.late, v.cut+o.cut
	v.leaders += o.leaders
	v.begun, v.gaps = append(v.begun, o.begun...), append(v.gaps, o.gaps...)
}

// judgeJob demands that the slot that began at the boundary, by the boot clock, was done, and begun in time, and that none was done
// twice.
func (v *rollingVerdict) judgeJob(of workerType, lines []line, zero time.Time, boundary time.Duration, g *gauge) {
	v.jobs++
	own := zero.Add(boundary).Round(rollingSlot).UnixMilli()
	first, done := time.Duration(0), map[int64]int{}
	for _, l := range lines {
		switch l.event {
		case began:
			if done[l.start] > 0 {
				v.bad("%s: %s began at %v of the boot clock for the slot %d, which was done", of.name, l.instance, l.boot, l.start)
			}
			if l.start == own && first == 0 {
				first = l.boot
			}
		case stopped:
			v.cut++
		case ended:
			if done[l.start]++; done[l.start] == 2 {
				v.twice++
				v.bad("%s: the slot %d was done twice", of.name, l.start)
			}
		}
	}
	if done[own] == 0 && !v.starved(g, boundary, boundary+rollingSlot) {
		v.lost++
		v.bad("%s: the slot %s, over whose start the workers were replaced, was not done", of.name, store.Format(time.UnixMilli(own)))
	}
	if first == 0 {
		return
	}
	took := first - boundary
	if took > rollingStart {
		if v.starved(g, boundary, first) {
			return
		}
		v.late++
		v.bad("%s: the slot %d was begun %v after its start, want within %v", of.name, own, took, rollingStart)
	}
	v.begun = append(v.begun, took)
}

// starved notes that this process, and so others, got no processor for long in a stretch of time: what was late then shows nothing.
func (v *rollingVerdict) starved(g *gauge, from, to time.Duration) bool {
	long := g.stalled(from, to) > rollingFailover/8
	if long {
		v.busy++
	}
	return long
}

// judgeLeader demands that somebody led all the time, but for the limit. turns are in the order of their first line.
func (v *rollingVerdict) judgeLeader(of workerType, turns []*turn, from, to time.Duration, g *gauge) {
	v.leaders++
	gap := func(until time.Duration) {
		if until <= from {
			return
		}
		if until-from > rollingLimit {
			if v.starved(g, from, until) {
				return
			}
			v.bad("%s: nobody led for %v from %v of the boot clock on, want within %v", of.name, until-from, from, rollingLimit)
		}
		v.gaps = append(v.gaps, until-from)
	}
	for _, t := range turns {
		gap(min(t.first, to))
		from = max(from, t.last)
	}
	gap(to - beatEvery*2) // The last command may have just written.
}

func (v *rollingVerdict) report() *report {
	r := v.newReport("Rolling deployments over a boundary: 2 to %d workers, slots of %v, failover within %v, one worker after the other, with up to %v between", mostRolling, rollingSlot, rollingFailover, rollingRest)
	sorted(v.begun)
	sorted(v.gaps)
	r.figure("workers ended in order and started again", v.replaced)
	r.figure("deployments of a job that is done once for each slot", v.jobs)
	r.figure("runs lost", v.lost)
	r.figure("runs done twice", v.twice)
	r.figure("runs begun later than StartWithin", v.late)
	r.row("attempts that a deployment ended", v.cut)
	r.figure("from the boundary to the first attempt, longest", quantile(v.begun, 100), "p50 "+quantile(v.begun, 50), "p99 "+quantile(v.begun, 99))
	r.figure("StartWithin", rollingStart)
	r.row("more deployments, for which the machine was too busy", v.busy)
	r.figure("deployments of a leader", v.leaders)
	r.figure("longest time in which nobody led", quantile(v.gaps, 100), "p50 "+quantile(v.gaps, 50), "p99 "+quantile(v.gaps, 99))
	r.figure("the bound of that", rollingLimit)
	r.figure("FailoverWithin", rollingFailover)
	return v.end(r, "No run was lost or done twice, and each began in time; nobody led for the bound at most; never two at once, and tokens only grew.")
}
