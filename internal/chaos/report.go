//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
)

// writeStrikes keeps the faults beside the other logs.
func (s *scene) writeStrikes() error {
	f, err := os.Create(filepath.Join(s.dir, "faults.jsonl"))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	e := json.NewEncoder(f)
	for _, k := range s.chaos.strikes {
		row := struct {
			Kind                     kind
			Type, Worker             string
			Leasectl, Guard, Command int
			Begin, End               string
		}{k.Kind, k.Type, k.Worker, k.leasectl, k.guard, k.command, k.Begin.String(), k.End.String()}
		if err := e.Encode(row); err != nil {
			return err
		}
	}
	return nil
}

// total adds up.
func total[K comparable](m map[K]int) (n int) {
	for _, each := range m {
		n += each
	}
	return n
}

// merged adds the counts of all worker types up.
func (v *verdict) merged(of func(typeVerdict) map[string]int) map[string]int {
	sum := map[string]int{}
	for _, t := range v.types {
		for class, n := range of(t) {
			sum[class] += n
		}
	}
	return sum
}

func (v *verdict) slots() (slots, worked, records int) {
	for _, t := range v.types {
		slots, worked, records = slots+t.slots, worked+t.worked, records+t.records
	}
	return slots, worked, records
}

func (v *verdict) missed() map[string]int {
	return v.merged(func(t typeVerdict) map[string]int { return t.missed })
}

func (v *verdict) cut() map[string]int {
	return v.merged(func(t typeVerdict) map[string]int { return t.cut })
}

// print writes the report.
func (v *verdict) print(to io.Writer) {
	p := newPaper(to)
	row, title := p.row, p.title
	title("Slots")
	row("  type", "length", "elapsed", "worked", "missed", "cut short", "records")
	for _, t := range v.types {
		row("  "+t.name, t.interval, t.slots, t.worked, t.slots-t.worked, total(t.cut), t.records)
	}
	slots, worked, records := v.slots()
	row("  all", "", slots, worked, slots-worked, total(v.cut()), records)
	counts := func(what string, m map[string]int) {
		if len(m) == 0 {
			return
		}
		title(what)
		for _, class := range slices.Sorted(maps.Keys(m)) {
			row("  "+class, m[class])
		}
	}
	counts("Why slots were missed", v.missed())
	counts("Why work was cut short", v.cut())
	title("Faults")
	for _, k := range slices.Sorted(maps.Keys(v.struck)) {
		row("  "+string(k), v.struck[k])
	}
	row("  all", total(v.struck), fmt.Sprintf("(%d times a whole worker type; %d found nobody to strike)", v.crowds, total(v.vain)))
	title("Overlaps, by the " + strconv.Itoa(v.log.lines) + " lines of the log")
	row("  unexpected", len(v.log.overlaps)-len(v.expected))
	row("  while guard and leasectl were stopped", len(v.expected), "longest "+v.longest.Round(ms).String())
	row("  works outside of their window then", len(v.expectedOutside))
	row("  fenced writes: accepted", v.fence.accepted)
	row("  fenced writes: refused as stale", v.refusals())
	row("  fenced writes: stale, accepted", len(v.fence.wrong))
	row("  fenced writes: unsure", v.log.unsure)
	title("Boundaries")
	row("  first line after the start of the slot", "median "+quantile(v.starts, 50), "p99 "+quantile(v.starts, 99))
	row("  from one's last line to the next one's first", "least "+quantile(v.handovers, 0), "median "+quantile(v.handovers, 50))
	row("  the machine: woken late by", "p99 "+quantile(v.stalls, 99), "most "+quantile(v.stalls, 100))
	title(fmt.Sprintf("The worker that was never killed (others were started again %d times)", v.restarts))
	row("", "fresh", "before", "after")
	row("  memory", mb(v.fresh.rss), mb(v.before.rss), mb(v.after.rss))
	row("  goroutines", v.fresh.goroutines, "", v.after.goroutines)
	row("  threads", v.fresh.threads, v.before.threads, v.after.threads)
	row("  descriptors", v.fresh.files, v.before.files, v.after.files)
	if len(v.notes) > 0 {
		title("Notes")
		for _, text := range v.notes {
			row("  " + text)
		}
	}
	p.end(v.wrong, "Never two at once, tokens only grew, and the fence held.")
}

// refusals are the writes that the fence refused.
func (v *verdict) refusals() (n int) {
	for _, works := range v.log.works {
		for _, w := range works {
			n += w.stale
		}
	}
	return n
}

func mb(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20)) }

// quantile is that of sorted durations, in percent.
func quantile(sorted []time.Duration, percent int) string {
	if len(sorted) == 0 {
		return "-"
	}
	return sorted[(len(sorted)-1)*percent/100].Round(ms / 10).String()
}

func (v *verdict) failed() bool { return len(v.wrong) > 0 }

// proof is the figures of the run.
func (v *verdict) proof() figures.Proof {
	slots, worked, _ := v.slots()
	missed := v.missed()
	return figures.Proof{
		Name:    "chaos-" + v.store,
		Command: fmt.Sprintf("make chaos STORE=%s DURATION=%v", v.store, v.duration),
		Figures: []figures.Figure{
			{What: "slots", Value: strconv.Itoa(slots)},
			{What: "slots in which somebody worked", Value: strconv.Itoa(worked)},
			{What: "slots missed, and why is not known", Value: strconv.Itoa(missed[unexplained])},
			{What: "faults", Value: strconv.Itoa(total(v.struck))},
			{What: "kinds of faults", Value: strconv.Itoa(len(v.struck))},
			{What: "leasectl processes started again", Value: strconv.Itoa(v.restarts)},
			{What: "lines that commands wrote", Value: strconv.Itoa(v.log.lines)},
			{What: "overlaps", Value: strconv.Itoa(len(v.log.overlaps) - len(v.expected))},
			{What: "overlaps while leasectl and its guard were both stopped", Value: strconv.Itoa(len(v.expected))},
			{What: "stale writes refused by their token", Value: strconv.Itoa(v.refusals())},
			{What: "stale writes accepted", Value: strconv.Itoa(len(v.fence.wrong))},
			{What: "things that were wrong", Value: strconv.Itoa(len(v.wrong))},
		},
	}
}
