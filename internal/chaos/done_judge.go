//go:build linux

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// doneVerdict is what the jobs have shown that are done once for each slot.
type doneVerdict struct {
	verdict

	kills, aimed int
	slots, done  int
	undone       map[string]int // by why
	begun        int            // commands
	after        int            // begun when the slot's done record was in the ledger
	crossed      int            // the same, but by a lease that was granted before it
	repeated     int            // begun although one had ended well: its record was never written
	ended        int            // commands that ended well
	attempts     map[int]int    // slots by the number of commands that were begun for it
}

// Why a slot wasn't done.
const (
	neverBegun = "nobody began"
	allFailed  = "was tried as often as allowed"
	ranOut     = "its time ran out"
)

// trail is what is known of one slot.
type trail struct {
	begun, ended int
	marked, done bool
	attempt      int // of the newest record
}

// judgeAll judges the jobs by what they have left behind.
func (v *doneVerdict) judgeAll(ctx context.Context, all []*job, begun, over time.Duration) error {
	for _, j := range all {
		e, err := j.evidence(ctx)
		if err != nil {
			return err
		}
		v.kills += j.struck
		v.aimed += j.aimed
		v.judge(e, over)
		v.judgeSlots(e.lines, e.records, slotsOf(j.of, begun, over, j.zero), &j.gauge)
	}
	v.judgeExtent()
	return nil
}

// judgeSlots judges by the log, in the order in which it was written, and by the
// ledger, oldest record first, whether a slot was left alone once it was done, and not
// tried too often. slots are those that count.
func (v *doneVerdict) judgeSlots(lines []line, records []store.Record, slots []slot, g *gauge) {
	trails := map[int64]*trail{} // by the start of the slot in Unix ms
	of := func(start int64) *trail {
		if trails[start] == nil {
			trails[start] = &trail{}
		}
		return trails[start]
	}
	v.readLines(of, lines, records)
	v.readRecords(of, records)
	if v.undone == nil {
		v.undone, v.attempts = map[string]int{}, map[int]int{}
	}
	v.slots += len(slots)
	for _, each := range slots {
		s := of(each.start.UnixMilli())
		v.attempts[s.begun]++
		switch {
		case s.done:
			v.done++
		case g.stalled(each.begin, each.finish) > doneFailover/4:
			v.undone[tooBusy]++
		case s.attempt >= maxAttempts:
			v.undone[allFailed]++
		case s.begun == 0:
			v.undone[neverBegun]++
		default:
			v.undone[ranOut]++
		}
	}
}

// readLines judges the order in which commands began and ended.
func (v *doneVerdict) readLines(of func(start int64) *trail, lines []line, records []store.Record) {
	granted, done := grantsAndDone(records)
	for _, l := range lines {
		s := of(l.start)
		switch l.event {
		case began:
			v.begun++
			s.begun++
			if s.ended > 0 {
				v.repeated++
			}
			switch seq := granted[l.token]; {
			case s.marked && seq > 0 && seq < done[l.end]:
				v.crossed++
			case s.marked:
				v.after++
				v.bad("%s: a command of %s (token %d) began at %v of the boot clock for the slot %d, whose done record was in the ledger", l.workerType, l.instance, l.token, l.boot, l.start)
			}
			if s.begun == maxAttempts+1 {
				v.bad("%s: more than %d commands began for the slot %d", l.workerType, maxAttempts, l.start)
			}
		case ended:
			v.ended++
			s.ended++
		case marked:
			s.marked = true
			if s.ended == 0 {
				v.bad("%s: %s wrote that the slot %d is done, and no command had ended well", l.workerType, l.instance, l.start)
			}
		}
	}
}

// readRecords judges the attempts, and the grants after done records.
func (v *doneVerdict) readRecords(of func(start int64) *trail, records []store.Record) {
	var head store.Record
	for _, r := range records {
		of(r.SlotStart.UnixMilli()).attempt = r.Attempt
		if text := wrongAttempt(r, head); text != "" {
			v.bad("%s: record %d: %s", r.WorkerType, r.Seq, text)
		}
		switch {
		case r.Kind == store.KindDone:
			of(r.DoneUntil.Add(-doneSlot).UnixMilli()).done = true
		case r.Kind == store.KindGrant && !r.SlotEnd.After(head.DoneUntil):
			v.bad("%s: record %d grants the slot %s to %s, and all is done until %s", r.WorkerType, r.Seq, store.Format(r.SlotStart), r.InstanceID, store.Format(head.DoneUntil))
		}
		head = r
	}
}

// grantsAndDone are the places in the ledger of the first grant of each token, and of
// the done record of each slot, by its end in Unix ms.
func grantsAndDone(records []store.Record) (granted, done map[int64]int64) {
	granted, done = map[int64]int64{}, map[int64]int64{}
	for _, r := range slices.Backward(records) {
		switch r.Kind {
		case store.KindGrant:
			granted[r.Token] = r.Seq
		case store.KindDone:
			done[r.DoneUntil.UnixMilli()] = r.Seq
		default:
		}
	}
	return granted, done
}

// wrongAttempt reports what is wrong with the number of a record's attempt. Each term
// adds one, unless it was released before it began; its further records repeat that.
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

// judgeExtent demands that nearly all slots were done.
func (v *doneVerdict) judgeExtent() {
	if known := v.slots - v.undone[tooBusy]; v.done == 0 || v.done*10 < known*9 {
		v.bad("%d of %d slots were done, want nine in ten", v.done, known)
	}
}

func (v *doneVerdict) report() *report {
	r := v.newReport("Once for each slot: %d worker types of %d workers, slots of %v, failover within %v, at most %d attempts", jobs, perType, doneSlot, doneFailover, maxAttempts)
	r.figure("leasectl processes killed", v.kills, fmt.Sprintf("(%d near the end of a command)", v.aimed))
	r.figure("slots", v.slots)
	r.figure("slots that were done", v.done)
	counts(r, "not done: %s", v.undone)
	counts(r, "slots that were begun %d times", v.attempts)
	r.figure("commands begun", v.begun)
	r.row("commands that ended well", v.ended)
	r.figure("begun after the slot's done record", v.after)
	r.figure("begun after it by a lease that was granted before it", v.crossed, "(the record was late: its append and the takeover crossed)")
	r.figure("begun again since the kill came before the record", v.repeated)
	r.figure("most attempts at a slot", slices.Max(append(slices.Collect(maps.Keys(v.attempts)), 0)))
	r.figure("attempts allowed", maxAttempts)
	return v.end(r, "No slot was begun after its done record, or too often; never two at once.")
}
