//go:build linux

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/store"
)

// doneCount is what became of the slots of jobs that are done once for each.
type doneCount struct {
	slots, done int
	undone      map[string]int // by why
	begun       int            // commands
	ended       int            // commands that did what was to be done
	after       int            // begun when the slot's done record was in the ledger
	crossed     int            // the same, but by a lease that was granted before it
	repeated    int            // begun although one had ended so: its record was never written
	attempts    map[int]int    // slots by the number of commands that were begun for it
	wrong       []string
}

// Why a slot wasn't done.
const (
	neverBegun = "nobody began"
	allFailed  = "was tried as often as allowed"
	ranOut     = "its time ran out"
)

// slotTrail is what is known of one slot.
type slotTrail struct {
	begun, ended int
	marked, done bool
	attempt      int // of the newest record
}

// trails are those of all slots, by their start in Unix ms.
type trails map[int64]*slotTrail

func (t trails) of(start int64) *slotTrail {
	if t[start] == nil {
		t[start] = &slotTrail{}
	}
	return t[start]
}

// judgeSlots judges by the log, in the order in which it was written, and by the
// ledger, oldest record first, whether a slot was left alone once it was done, and not
// tried too often. slots are those that count.
func judgeSlots(lines []line, records []store.Record, slots []slot, g *gauge) doneCount {
	c := doneCount{undone: map[string]int{}, attempts: map[int]int{}}
	t := trails{}
	c.readLines(t, lines, records)
	c.readRecords(t, records)
	c.count(t, slots, g)
	return c
}

func (c *doneCount) bad(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// readLines takes in what was written to the log.
func (c *doneCount) readLines(t trails, lines []line, records []store.Record) {
	granted, told := grantsAndDone(records)
	for _, l := range lines {
		s := t.of(l.start)
		switch l.event {
		case began:
			c.begun++
			s.begun++
			if s.ended > 0 {
				c.repeated++
			}
			switch seq := granted[l.token]; {
			case s.marked && seq > 0 && seq < told[l.end]:
				c.crossed++
			case s.marked:
				c.after++
				c.bad("%s: a command of %s (token %d) began at %v of the boot clock for the slot %d, whose done record was in the ledger", l.workerType, l.instance, l.token, l.boot, l.start)
			}
			if s.begun == maxAttempts+1 {
				c.bad("%s: more than %d commands began for the slot %d", l.workerType, maxAttempts, l.start)
			}
		case ended:
			c.ended++
			s.ended++
		case marked:
			s.marked = true
			if s.ended == 0 {
				c.bad("%s: %s wrote that the slot %d is done, and no command had ended well", l.workerType, l.instance, l.start)
			}
		}
	}
}

// readRecords takes in the ledger.
func (c *doneCount) readRecords(t trails, records []store.Record) {
	var head store.Record
	for _, r := range records {
		t.of(r.SlotStart.UnixMilli()).attempt = r.Attempt
		if text := wrongAttempt(r, head); text != "" {
			c.bad("%s: record %d: %s", r.WorkerType, r.Seq, text)
		}
		switch {
		case r.Kind == store.KindDone:
			t.of(r.DoneUntil.Add(-doneSlot).UnixMilli()).done = true
		case r.Kind == store.KindGrant && !r.SlotEnd.After(head.DoneUntil):
			c.bad("%s: record %d grants the slot %s to %s, and all is done until %s", r.WorkerType, r.Seq, store.Format(r.SlotStart), r.InstanceID, store.Format(head.DoneUntil))
		}
		head = r
	}
}

// count counts the slots by what became of them.
func (c *doneCount) count(t trails, slots []slot, g *gauge) {
	for _, each := range slots {
		s := t.of(each.start.UnixMilli())
		c.slots++
		c.attempts[s.begun]++
		switch {
		case s.done:
			c.done++
		case g.stalled(each.begin, each.finish) > doneFailover/4:
			c.undone[tooBusy]++
		case s.attempt >= maxAttempts:
			c.undone[allFailed]++
		case s.begun == 0:
			c.undone[neverBegun]++
		default:
			c.undone[ranOut]++
		}
	}
}

// grantsAndDone are the places in the ledger of the first grant of each token, and of
// the done record of each slot, by its end in Unix ms.
func grantsAndDone(records []store.Record) (granted, done map[int64]int64) {
	granted, done = map[int64]int64{}, map[int64]int64{}
	for _, r := range records {
		switch r.Kind {
		case store.KindGrant:
			if granted[r.Token] == 0 {
				granted[r.Token] = r.Seq
			}
		case store.KindDone:
			if end := r.DoneUntil.UnixMilli(); done[end] == 0 {
				done[end] = r.Seq
			}
		default:
		}
	}
	return granted, done
}

// wrongAttempt says what is wrong with the number of a record's attempt. Each tenure is
// one more, unless it was released before it began; what is behind it repeats that.
func wrongAttempt(r, head store.Record) string {
	want := 0
	if r.SlotStart.Equal(head.SlotStart) {
		want = head.Attempt
	}
	switch {
	case r.Kind == store.KindGrant && r.Claim != head.Claim:
		want++
	case r.Kind == store.KindRelease && r.Attempt == want-1:
		return "" // It was released before it began.
	}
	if r.Attempt != want || r.Attempt > maxAttempts {
		return fmt.Sprintf("has attempt %d of the slot %s, want %d, and at most %d", r.Attempt, store.Format(r.SlotStart), want, maxAttempts)
	}
	return ""
}

// doneVerdict is what all jobs have shown.
type doneVerdict struct {
	settings
	doneCount

	kills, aimed int
	stalls       []time.Duration // sorted
}

// add adds the count of one job.
func (v *doneVerdict) add(c doneCount) {
	v.slots, v.done, v.begun, v.ended = v.slots+c.slots, v.done+c.done, v.begun+c.begun, v.ended+c.ended
	v.after, v.crossed, v.repeated = v.after+c.after, v.crossed+c.crossed, v.repeated+c.repeated
	if v.undone == nil {
		v.undone, v.attempts = map[string]int{}, map[int]int{}
	}
	for why, n := range c.undone {
		v.undone[why] += n
	}
	for n, slots := range c.attempts {
		v.attempts[n] += slots
	}
	v.wrong = append(v.wrong, c.wrong...)
}

// judge looks at all jobs together.
func (v *doneVerdict) judge() {
	if told := v.slots - v.undone[tooBusy]; v.done == 0 || v.done*10 < told*9 {
		v.wrong = append(v.wrong, fmt.Sprintf("%d of %d slots were done, want nine in ten", v.done, told))
	}
}

func (v *doneVerdict) print(to io.Writer) {
	p := newPaper(to)
	p.title(fmt.Sprintf("Once for each slot: %d worker types of %d workers, slots of %v, failover within %v, at most %d attempts", jobs, crew, doneSlot, doneFailover, maxAttempts))
	p.row("  leasectl killed", v.kills, fmt.Sprintf("(%d near the end of a command)", v.aimed))
	p.row("  slots", v.slots)
	p.row("  done", v.done)
	for _, why := range slices.Sorted(maps.Keys(v.undone)) {
		p.row("  not done: "+why, v.undone[why])
	}
	p.row("  commands begun", v.begun)
	p.row("  commands that did it", v.ended)
	p.row("  begun again although one had done it", v.repeated, "(its leasectl was killed before it could write that)")
	p.row("  begun after the done record", v.after)
	p.row("  begun after it by a lease from before it", v.crossed, "(the record was late: its append and the takeover crossed)")
	for _, n := range slices.Sorted(maps.Keys(v.attempts)) {
		p.row(fmt.Sprintf("  slots that were begun %d times", n), v.attempts[n])
	}
	p.row("  the machine: woken late by", "p99 "+quantile(v.stalls, 99), "most "+quantile(v.stalls, 100))
	p.end(v.wrong, "No slot was begun after its done record, or too often; never two at once.")
}

func (v *doneVerdict) failed() bool { return len(v.wrong) > 0 }

func (v *doneVerdict) proof() figures.Proof {
	most := 0
	for n := range v.attempts {
		most = max(most, n)
	}
	return figures.Proof{
		Name:    "done-" + v.store,
		Command: fmt.Sprintf("make done STORE=%s TRIES=%d", v.store, v.tries),
		Figures: []figures.Figure{
			{What: "leasectl processes killed", Value: strconv.Itoa(v.kills)},
			{What: "slots", Value: strconv.Itoa(v.slots)},
			{What: "slots that were done", Value: strconv.Itoa(v.done)},
			{What: "commands begun", Value: strconv.Itoa(v.begun)},
			{What: "begun after the slot's done record", Value: strconv.Itoa(v.after)},
			{What: "begun after it by a lease that was granted before it", Value: strconv.Itoa(v.crossed)},
			{What: "begun again since the kill came before the record", Value: strconv.Itoa(v.repeated)},
			{What: "most attempts at a slot", Value: strconv.Itoa(most)},
			{What: "attempts allowed", Value: strconv.Itoa(maxAttempts)},
			{What: "things that were wrong", Value: strconv.Itoa(len(v.wrong))},
		},
	}
}
