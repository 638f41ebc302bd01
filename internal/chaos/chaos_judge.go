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

// chaosVerdict is what a run of the faults has shown.
type chaosVerdict struct {
	verdict

	run    *chaosRun
	types  []typeVerdict
	missed map[string]int // slots, by why
	struck map[kind]int

	lines, found              int // of the commands; overlaps
	accepted, refused, unsure int // writes to the fence
	staleWrites               int // that the fence accepted

	restarts int
	starts   []time.Duration // sorted
}

// typeVerdict is that of one worker type.
type typeVerdict struct {
	workerType

	slots, worked, records int
}

// judge reads everything that a run has left behind.
func (c *chaosRun) judge(ctx context.Context) (*chaosVerdict, error) {
	v := &chaosVerdict{verdict: c.verdict(), run: c, missed: map[string]int{}, struck: map[kind]int{}}
	for _, k := range c.strikes {
		v.struck[k.Kind]++
	}
	for _, t := range c.teams {
		e, err := t.evidence(ctx)
		if err != nil {
			return nil, err
		}
		e.strikes, e.stalls = c.strikes, c.gauge.all()
		if c.store == "sqlite" {
			e.tolerance = 2 * ms // stamps of microseconds
		}
		if e.zero, err = offsetOf(ctx, t.ledger); err != nil {
			return nil, err
		}
		for _, text := range t.archive.wrong {
			v.bad("ledger: %s", text)
		}
		v.judge(e, c.end)
		v.judgeType(e, slotsOf(t.of, c.start, c.end, e.zero))
		for _, h := range e.histories {
			v.restarts += len(h.lives) - 1
		}
		tokens, err := c.fence.writes(ctx, t.of.name)
		if err != nil {
			return nil, err
		}
		v.accepted += len(tokens)
		for _, text := range staleWrites(t.of.name, tokens) {
			v.staleWrites++
			v.bad("fence: %s", text)
		}
		types, err := t.ledger.WorkerTypes(ctx)
		if err != nil {
			return nil, err
		}
		if slices.Contains(types, uncommitted) {
			v.bad("the ledger has records of a transaction that was never committed")
		}
	}
	if unfenced(v.overlaps, v.refused) {
		v.bad("fence: commands overlapped for long, and none of their writes was refused")
	}
	v.judgeExtent()
	v.judgeLeaks()
	return v, nil
}

// judgeType judges one worker type, and classifies its slots.
func (v *chaosVerdict) judgeType(e evidence, slots []slot) {
	v.judgeTokens(e)
	v.lines += len(e.lines)
	v.found += len(e.overlaps)
	v.refused += e.count(stale)
	v.unsure += e.count(unsure)
	result := typeVerdict{workerType: e.of, slots: len(slots), records: len(e.records)}
	first := map[int64]*turn{}
	for _, t := range slices.Backward(e.turns) {
		first[t.start] = t
	}
	for _, slot := range slots {
		if t := first[slot.start.UnixMilli()]; t != nil {
			result.worked++
			v.starts = append(v.starts, t.first-slot.begin)
			continue
		}
		class, detail := e.missed(slot)
		v.missed[class]++
		if class == unexplained {
			v.note("%s: slot %s (boot clock %v) was missed: %s", e.of.name, store.Format(slot.start), slot.begin, detail)
		}
	}
	v.types = append(v.types, result)
}

// judgeTokens finds tokens with which several commands began: here no lease is extended.
func (v *chaosVerdict) judgeTokens(e evidence) {
	commands := map[int64]*turn{}
	for _, t := range e.turns {
		if t.role != asCommand {
			continue
		}
		if before := commands[t.token]; before != nil {
			v.bad("order: %s: %v began with the token of %v", t.workerType, t, before)
		}
		commands[t.token] = t
	}
}

// judgeExtent fails a run that shows too little: without any fault, or with work in
// less than half of the slots.
//
// It also fails a run with many slots that were missed for no known reason. It can't
// demand that there are none: how busy the machine was for other processes is only
// estimated from this one (see starved), so a leasectl or a store that waited long for
// a processor or a disk leaves a slot unexplained. Runs of half an hour, of 3,300
// slots, have had none.
func (v *chaosVerdict) judgeExtent() {
	if total(v.struck) == 0 {
		v.bad("no fault struck: that shows nothing")
	}
	possible := 0
	for _, t := range v.types {
		possible += int(v.duration / t.interval)
		if t.worked == 0 {
			v.bad("%s: nobody worked in any of %d slots", t.name, t.slots)
		}
	}
	all := v.all()
	if 2*all.worked < possible {
		v.bad("somebody worked in %d slots, of the %d that %v have: that shows too little", all.worked, possible, v.duration)
	}
	if n := v.missed[unexplained]; n > max(2, possible/200) {
		v.bad("%d of %d slots were missed, and why is not known: see the notes", n, possible)
	}
}

// mayGrow is what a worker may take more after the faults than before them: a few
// connections and the goroutines that serve them, and a heap that has grown to its
// working size.
var mayGrow = map[string]int64{goroutines: 25, descriptors: 25, resident: 64 << 10}

// before is what the control worker took before the faults, or another fresh one.
func (v *chaosVerdict) before(what string) int64 {
	if n, known := v.run.before[what]; known {
		return n
	}
	return v.run.fresh[what]
}

func (v *chaosVerdict) judgeLeaks() {
	for what, most := range mayGrow {
		if from, to := v.before(what), v.run.after[what]; to > from+most {
			v.bad("leak: the control worker has %d %s, a fresh one %d", to, what, from)
		}
	}
}

// total adds up.
func total[K comparable](m map[K]int) (n int) {
	for _, each := range m {
		n += each
	}
	return n
}

// all adds up the worker types.
func (v *chaosVerdict) all() typeVerdict {
	sum := typeVerdict{workerType: workerType{name: "all"}}
	for _, t := range v.types {
		sum.slots, sum.worked, sum.records = sum.slots+t.slots, sum.worked+t.worked, sum.records+t.records
	}
	return sum
}

func (v *chaosVerdict) report() *report {
	r := v.newReport("Slots")
	r.Command = fmt.Sprintf("make chaos STORE=%s DURATION=%v", v.store, v.duration)
	all := v.all()
	r.row("type", "length", "elapsed", "worked", "missed", "records")
	for _, t := range append(v.types, all) {
		r.row(t.name, t.interval, t.slots, t.worked, t.slots-t.worked, t.records)
	}
	r.title("Why slots were missed")
	counts(r, "%s", v.missed)
	r.title("Faults")
	counts(r, "%s", v.struck)
	r.row("of a whole worker type", v.run.crowds.Load())
	r.row("planned, but found no target", v.run.vain.Load())

	r.title("Figures")
	r.figure("slots", all.slots)
	r.figure("slots in which somebody worked", all.worked)
	r.figure("slots missed, and why is not known", v.missed[unexplained])
	r.figure("faults", total(v.struck))
	r.figure("kinds of faults", len(v.struck))
	r.figure("leasectl processes started again", v.restarts)
	r.figure("lines that commands wrote", v.lines)
	longest := time.Duration(0)
	for _, o := range v.overlaps {
		longest = max(longest, o.last-o.first)
	}
	r.figure("overlaps", v.found-len(v.overlaps))
	r.figure("overlaps while leasectl and its guard were both stopped", len(v.overlaps), "longest "+longest.Round(ms).String())
	r.row("works outside of their window then", v.outside)
	r.row("fenced writes accepted", v.accepted)
	r.row("fenced writes of unknown outcome", v.unsure)
	r.figure("stale writes refused by their token", v.refused)
	r.figure("stale writes accepted", v.staleWrites)
	r.row("first line after the start of the slot", "median "+quantile(sorted(v.starts), 50), "p99 "+quantile(v.starts, 99))

	r.title("The worker that was never killed")
	r.row("", "before", "after")
	for _, what := range slices.Sorted(maps.Keys(mayGrow)) {
		r.row(what, v.before(what), v.run.after[what])
	}
	r.title("The run")
	return v.end(r, "Never two at once, tokens only grew, and the fence held.")
}
