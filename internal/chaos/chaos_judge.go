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

	types  []typeVerdict
	crowds int
	struck map[kind]int
	vain   map[kind]int

	lines, found              int // of the commands; overlaps
	accepted, refused, unsure int // writes to the fence
	staleWrites               int // that the fence accepted

	fresh, before, after usage
	restarts             int
	starts               []time.Duration // sorted
}

// typeVerdict is that of one worker type.
type typeVerdict struct {
	workerType
	slots, worked int
	records       int
	missed        map[string]int
}

// judge reads everything that a run has left behind.
func (c *chaosRun) judge(ctx context.Context) (*chaosVerdict, error) {
	v := &chaosVerdict{
		verdict: c.verdict(), struck: map[kind]int{}, vain: c.vain, crowds: c.crowds,
		fresh: c.fresh, before: c.before, after: c.beyond,
	}
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
		v.judgeType(e, slotsOf(t.of, c.start, c.end, e.zero))
		v.judgeLives(e.histories, c.end)
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
	v.judge(e)
	v.judgeTokens(e)
	v.lines += len(e.lines)
	v.found += len(e.overlaps)
	v.refused += e.count(stale)
	v.unsure += e.count(unsure)
	result := typeVerdict{workerType: e.of, slots: len(slots), records: len(e.records), missed: map[string]int{}}
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
		result.missed[class]++
		if class == unexplained {
			v.notes = append(v.notes, fmt.Sprintf("%s: slot %s (boot clock %v) was missed: %s", e.of.name, store.Format(slot.start), slot.begin, detail))
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
	if n := all.missed[unexplained]; n > max(2, possible/200) {
		v.bad("%d of %d slots were missed, and why is not known: see the notes", n, possible)
	}
}

// What a worker may take more after the faults than a fresh one: a few connections
// and the goroutines that serve them, and a heap that has grown to its working size.
const (
	moreGoroutines = 25
	moreFiles      = 25
	moreMemory     = 64 << 20
)

func (v *chaosVerdict) judgeLeaks() {
	for _, leak := range []struct {
		what           string
		from, to, most int64
	}{
		{"goroutines", int64(v.fresh.goroutines), int64(v.after.goroutines), moreGoroutines},
		{"descriptors", int64(v.before.files), int64(v.after.files), moreFiles},
		{"bytes of memory", v.before.rss, v.after.rss, moreMemory},
	} {
		if leak.to > leak.from+leak.most {
			v.bad("leak: the control worker has %d %s, a fresh one %d", leak.to, leak.what, leak.from)
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
	sum := typeVerdict{workerType: workerType{name: "all"}, missed: map[string]int{}}
	for _, t := range v.types {
		sum.slots, sum.worked, sum.records = sum.slots+t.slots, sum.worked+t.worked, sum.records+t.records
		for class, n := range t.missed {
			sum.missed[class] += n
		}
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
	if len(all.missed) > 0 {
		r.title("Why slots were missed")
	}
	for _, class := range slices.Sorted(maps.Keys(all.missed)) {
		r.row(class, all.missed[class])
	}
	r.title("Faults")
	for _, k := range slices.Sorted(maps.Keys(v.struck)) {
		r.row(k, v.struck[k])
	}
	r.row("of a whole worker type", v.crowds)
	r.row("planned, but found no target", total(v.vain))

	r.title("Figures")
	r.figure("slots", all.slots)
	r.figure("slots in which somebody worked", all.worked)
	r.figure("slots missed, and why is not known", all.missed[unexplained])
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
	mb := func(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20)) }
	r.row("", "fresh", "before", "after")
	r.row("memory", mb(v.fresh.rss), mb(v.before.rss), mb(v.after.rss))
	r.row("goroutines", v.fresh.goroutines, "", v.after.goroutines)
	r.row("threads", v.fresh.threads, v.before.threads, v.after.threads)
	r.row("descriptors", v.fresh.files, v.before.files, v.after.files)
	r.title("The run")
	return v.end(r, "Never two at once, tokens only grew, and the fence held.")
}
