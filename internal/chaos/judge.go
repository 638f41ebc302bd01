//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
)

// verdict is what a run has shown.
type verdict struct {
	settings

	wrong []string // what fails the run
	notes []string // what is listed, and doesn't

	stalls []time.Duration // sorted
	types  []typeVerdict
	crowds int
	struck map[kind]int
	vain   map[kind]int
	log    chronicle
	fence  fenceReport

	expected        []*overlap
	expectedOutside []outside
	longest         time.Duration // of the overlaps that were expected

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

func (v *verdict) bad(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

// judge reads everything that a run has left behind.
func (s *scene) judge(ctx context.Context) (report, error) {
	strikes := s.chaos.strikes
	v := &verdict{
		settings: s.settings, wrong: s.wrong, struck: map[kind]int{}, vain: s.chaos.vain, crowds: s.chaos.crowds,
		fresh: s.fresh, before: s.before, after: s.beyond,
	}
	for _, k := range strikes {
		v.struck[k.Kind]++
	}
	for _, each := range s.stalls {
		v.stalls = append(v.stalls, each.late)
	}
	slices.Sort(v.stalls)
	f, err := os.Open(s.log())
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if v.log, err = readLog(f); err != nil {
		return nil, err
	}
	var bugs []*overlap
	v.expected, bugs = judgeOverlaps(v.log.overlaps, strikes)
	for _, o := range bugs {
		v.bad("overlap: %v", o)
	}
	for _, o := range v.expected {
		v.longest = max(v.longest, o.last-o.first)
	}
	for _, text := range judgeOrder(v.log, v.expected) {
		v.bad("order: %s", text)
	}
	if v.fence, err = checkFence(ctx, s.fence, cast); err != nil {
		return nil, err
	}
	for _, text := range v.fence.wrong {
		v.bad("fence: %s", text)
	}
	if unfenced(v.log, v.expected) {
		v.bad("fence: commands overlapped for long, and none of their writes was refused")
	}
	histories := s.histories()
	for i, t := range cast {
		if err := s.judgeType(ctx, v, t, evidence{strikes: strikes, histories: histories[i], stalls: s.stalls}); err != nil {
			return nil, err
		}
	}
	for _, text := range s.archive.wrong {
		v.bad("ledger: %s", text)
	}
	foreign, err := s.stage.foreign(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range foreign {
		v.bad("%s", text)
	}
	v.judgeExtent()
	v.judgeLives(slices.Concat(histories...), s.end)
	v.judgeLeaks()
	slices.Sort(v.starts)
	slices.Sort(v.handovers)
	return v, s.writeStrikes()
}

// histories are those of all workers, by worker type.
func (s *scene) histories() (all [][]history) {
	zero := time.Now().Add(-boottime())
	for _, ws := range s.workers {
		var of []history
		for _, w := range ws {
			of = append(of, readHistory(w.name(), w.lives, w.said(0), zero))
		}
		all = append(all, of)
	}
	return all
}

// judgeType looks at the ledger and at the slots of one worker type.
func (s *scene) judgeType(ctx context.Context, v *verdict, t workerType, e evidence) error {
	records, zero, err := s.records(ctx, t)
	if err != nil {
		return err
	}
	e.records = records
	for _, text := range checkLedger(records) {
		v.bad("ledger: %s", text)
	}
	tolerance := 2 * ms
	if s.settings.store == "mongo" {
		tolerance = 5 * ms // stamps of whole milliseconds, and a wall clock that may be slewed
	}
	works := v.log.works[t.name]
	expected, late, bugs := judgeOutside(checkWorks(works, windows(records), zero, tolerance), e.strikes)
	v.expectedOutside = append(v.expectedOutside, expected...)
	for _, o := range late {
		v.notes = append(v.notes, fmt.Sprintf("killed late: %v", o))
	}
	for _, o := range bugs {
		v.bad("outside its window: %v", o)
	}
	result := typeVerdict{workerType: t, records: len(records), missed: map[string]int{}, cut: map[string]int{}}
	bySlot := map[int64][]*work{}
	for _, w := range works {
		bySlot[w.start] = append(bySlot[w.start], w)
	}
	var before *work
	for _, slot := range slotsOf(t, s.start, s.end, zero) {
		result.slots++
		in := bySlot[slot.start.UnixMilli()]
		if len(in) == 0 {
			class, detail := e.missed(slot)
			result.missed[class]++
			if class == unexplained || s.verbose {
				v.notes = append(v.notes, fmt.Sprintf("%s: slot %s (boot clock %v) was missed: %s: %s", t.name, store.Format(slot.start), slot.begin, class, detail))
			}
			before = nil
			continue
		}
		result.worked++
		last := slices.MaxFunc(in, func(a, b *work) int { return cmp.Compare(a.last, b.last) })
		if class, detail := e.cut(last, slot); class != "" {
			result.cut[class]++
			if class == unexplained {
				v.notes = append(v.notes, fmt.Sprintf("%s: slot %s (boot clock %v) was cut short: %s", t.name, store.Format(slot.start), slot.begin, detail))
			}
		}
		v.starts = append(v.starts, in[0].first-slot.begin)
		if before != nil && in[0].first > before.last && !before.quit {
			v.handovers = append(v.handovers, in[0].first-before.last)
		}
		before = last
	}
	v.types = append(v.types, result)
	return nil
}

// judgeExtent fails a run that shows too little: in which no fault struck, or in
// which hardly anybody worked.
//
// It also fails one in which many slots were missed for no known reason. That none
// is can't be asked: what the machine did to another process is guessed from what it
// did to this one (see starved), so that a leasectl, or a writer of the store, that
// got no processor for long, or waited for a disk, leaves a slot unexplained. Runs of
// half an hour, of 3,300 slots, have had none.
func (v *verdict) judgeExtent() {
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
	_, worked, _ := v.slots()
	if 2*worked < possible {
		v.bad("somebody worked in %d slots, of the %d that %v have: that shows too little", worked, possible, v.duration)
	}
	if n := v.missed()[unexplained]; n > max(2, possible/200) {
		v.bad("%d of %d slots were missed, and why is not known: see the notes", n, possible)
	}
}

// judgeLives looks how the leasectl processes ended.
func (v *verdict) judgeLives(histories []history, end time.Duration) {
	for _, h := range histories {
		v.restarts += len(h.lives) - 1
		for _, l := range h.lives {
			switch {
			case l.how != endLeasectl || l.cleanly:
			case l.struck > end:
				v.bad("leasectl of %s (pid %d), told to end after all faults: %s", h.name, l.pid, l.result)
			default:
				v.notes = append(v.notes, fmt.Sprintf("leasectl of %s (pid %d), told to end at %v of the boot clock: %s", h.name, l.pid, l.struck, l.result))
			}
			for _, s := range l.said {
				if strings.Contains(s.Message, "panic") || strings.Contains(s.Message, "could not be killed") || strings.Contains(s.Message, "internal error") {
					v.bad("leasectl of %s (pid %d) said: %s %s", h.name, l.pid, s.Message, s.Err)
				}
			}
		}
	}
}

// What a worker may take more after the faults than a fresh one: a few connections
// and what serves them, and a heap that has grown to its working size.
const (
	moreGoroutines = 25
	moreFiles      = 25
	moreMemory     = 64 << 20
)

func (v *verdict) judgeLeaks() {
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
