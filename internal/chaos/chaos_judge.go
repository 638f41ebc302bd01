//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
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
	log    *chronicle
	fence  fenceReport

	expected        []*overlap
	expectedOutside []outside

	fresh, before, after usage
	restarts             int
	starts, handovers    []time.Duration // sorted
}

// typeVerdict is that of one worker type.
type typeVerdict struct {
	workerType
	slots, worked int
	records       int
	missed, cut   map[string]int
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
	f, err := os.Open(c.log())
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if v.log, err = readLog(f); err != nil {
		return nil, err
	}
	v.judgeOrder(c.strikes)
	if v.fence, err = checkFence(ctx, c.fence, workerTypes); err != nil {
		return nil, err
	}
	for _, text := range v.fence.wrong {
		v.bad("fence: %s", text)
	}
	if unfenced(v.log, v.expected) {
		v.bad("fence: commands overlapped for long, and none of their writes was refused")
	}
	for _, t := range c.teams {
		e := evidence{of: t.of, works: v.log.works[t.of.name], tolerance: 2 * ms, histories: t.histories(), strikes: c.strikes, stalls: c.gauge.all()}
		if c.store == "mongo" {
			e.tolerance = 5 * ms // stamps of whole milliseconds, and a wall clock that may be slewed
		}
		if e.zero, err = offsetOf(ctx, t.ledger); err != nil {
			return nil, err
		}
		now, err := t.records(ctx, allRecords)
		if err != nil {
			return nil, err
		}
		e.records = t.archive.all(now)
		for _, text := range t.archive.wrong {
			v.bad("ledger: %s", text)
		}
		v.judgeType(e, slotsOf(t.of, c.start, c.end, e.zero))
		v.judgeLives(e.histories, c.end)
		for _, h := range e.histories {
			v.restarts += len(h.lives) - 1
		}
	}
	foreign, err := c.backend.foreign(ctx)
	v.wrong = append(v.wrong, foreign...)
	v.judgeExtent()
	v.judgeLeaks()
	return v, err
}

// judgeOrder looks for commands that overlap, or begin out of order.
func (v *chaosVerdict) judgeOrder(strikes []*strike) {
	var bugs []*overlap
	v.expected, bugs = judgeOverlaps(v.log.overlaps, strikes)
	for _, o := range bugs {
		v.bad("overlap: %v", o)
	}
	for _, text := range judgeOrder(v.log, v.expected) {
		v.bad("order: %s", text)
	}
}

// judgeType judges one worker type, and classifies its slots.
func (v *chaosVerdict) judgeType(e evidence, slots []slot) {
	v.expectedOutside = append(v.expectedOutside, v.judge(e)...)
	result := typeVerdict{workerType: e.of, slots: len(slots), records: len(e.records), missed: map[string]int{}, cut: map[string]int{}}
	note := func(s slot, what, why string) {
		v.notes = append(v.notes, fmt.Sprintf("%s: slot %s (boot clock %v) was %s: %s", e.of.name, store.Format(s.start), s.begin, what, why))
	}
	bySlot := map[int64][]*work{}
	for _, w := range e.works {
		bySlot[w.start] = append(bySlot[w.start], w)
	}
	var before *work
	for _, slot := range slots {
		in := bySlot[slot.start.UnixMilli()]
		if len(in) == 0 {
			class, detail := e.missed(slot)
			result.missed[class]++
			if class == unexplained || v.verbose {
				note(slot, "missed", class+": "+detail)
			}
			before = nil
			continue
		}
		result.worked++
		last := slices.MaxFunc(in, func(a, b *work) int { return cmp.Compare(a.last, b.last) })
		if class, detail := e.cut(last, slot); class != "" {
			result.cut[class]++
			if class == unexplained {
				note(slot, "cut short", detail)
			}
		}
		v.starts = append(v.starts, in[0].first-slot.begin)
		if before != nil && in[0].first > before.last && !before.quit {
			v.handovers = append(v.handovers, in[0].first-before.last)
		}
		before = last
	}
	v.types = append(v.types, result)
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
	sum := typeVerdict{workerType: workerType{name: "all"}, missed: map[string]int{}, cut: map[string]int{}}
	for _, t := range v.types {
		sum.slots, sum.worked, sum.records = sum.slots+t.slots, sum.worked+t.worked, sum.records+t.records
		for class, n := range t.missed {
			sum.missed[class] += n
		}
		for class, n := range t.cut {
			sum.cut[class] += n
		}
	}
	return sum
}

func (v *chaosVerdict) report() *report {
	r := v.newReport("Slots")
	r.Command = fmt.Sprintf("make chaos STORE=%s DURATION=%v", v.store, v.duration)
	all := v.all()
	r.row("type", "length", "elapsed", "worked", "missed", "cut short", "records")
	for _, t := range append(v.types, all) {
		r.row(t.name, t.interval, t.slots, t.worked, t.slots-t.worked, total(t.cut), t.records)
	}
	counts := func(what string, m map[string]int) {
		if len(m) > 0 {
			r.title("%s", what)
		}
		for _, class := range slices.Sorted(maps.Keys(m)) {
			r.row(class, m[class])
		}
	}
	counts("Why slots were missed", all.missed)
	counts("Why work was cut short", all.cut)
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
	r.figure("lines that commands wrote", v.log.lines)
	longest := time.Duration(0)
	for _, o := range v.expected {
		longest = max(longest, o.last-o.first)
	}
	r.figure("overlaps", len(v.log.overlaps)-len(v.expected))
	r.figure("overlaps while leasectl and its guard were both stopped", len(v.expected), "longest "+longest.Round(ms).String())
	r.row("works outside of their window then", len(v.expectedOutside))
	r.row("fenced writes accepted", v.fence.accepted)
	r.row("fenced writes of unknown outcome", v.log.unsure)
	r.figure("stale writes refused by their token", v.log.refused)
	r.figure("stale writes accepted", len(v.fence.wrong))
	r.row("first line after the start of the slot", "median "+quantile(sorted(v.starts), 50), "p99 "+quantile(v.starts, 99))
	r.row("from one's last line to the next one's first", "least "+quantile(sorted(v.handovers), 0), "median "+quantile(v.handovers, 50))

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
