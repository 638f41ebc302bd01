//go:build linux

package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
)

// verdict is what every scenario finds out about a run.
type verdict struct {
	settings

	wrong  []string        // fails the run
	notes  []string        // is listed, and fails nothing
	stalls []time.Duration // how late this process was woken; sorted

	// What faults excuse: work when another had begun, and outside of its window.
	overlaps []*overlap
	outside  int
}

func (v *verdict) bad(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

func (v *verdict) note(format string, args ...any) {
	v.notes = append(v.notes, fmt.Sprintf(format, args...))
}

func (v *verdict) failed() bool { return len(v.wrong) > 0 }

// report is a verdict as text for people and as figures to save.
type report struct {
	figures.Proof

	text   strings.Builder
	cells  *tabwriter.Writer
	failed bool
}

func (v *verdict) newReport(format string, args ...any) *report {
	r := &report{Proof: figures.Proof{
		Name:    v.scenario + "-" + v.store,
		Command: fmt.Sprintf("make %s STORE=%s TRIES=%d", v.scenario, v.store, v.tries),
	}}
	if v.older != "" {
		r.Name, r.Command = r.Name+"-older", r.Command+" OLDER="+filepath.Base(v.older)
	}
	r.cells = tabwriter.NewWriter(&r.text, 0, 0, 2, ' ', 0)
	r.title(format, args...)
	return r
}

// title begins a section.
func (r *report) title(format string, args ...any) {
	_ = r.cells.Flush()
	_, _ = fmt.Fprintf(&r.text, "\n"+format+"\n", args...)
}

// row prints cells, in columns with those of the rows around it.
func (r *report) row(cells ...any) {
	var text []string
	for _, c := range cells {
		text = append(text, fmt.Sprint(c))
	}
	_, _ = fmt.Fprintln(r.cells, "  "+strings.Join(text, "\t"))
}

// counts prints a row for each count, with its key in a format.
func counts[K cmp.Ordered](r *report, format string, m map[K]int) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		r.row(fmt.Sprintf(format, k), m[k])
	}
}

// figure prints a row and saves it.
func (r *report) figure(what string, value any, more ...any) {
	r.row(append([]any{what, value}, more...)...)
	r.Figures = append(r.Figures, figures.Figure{What: what, Value: fmt.Sprint(value)})
}

// end prints what was wrong or, if nothing was, what that means.
func (v *verdict) end(r *report, fine string) *report {
	r.row("the harness was woken late by", "p99 "+quantile(v.stalls, 99), "most "+quantile(v.stalls, 100))
	r.figure("things that were wrong", len(v.wrong))
	list := func(title string, texts []string) {
		if len(texts) == 0 {
			return
		}
		r.title("%s", title)
		for _, text := range texts {
			r.row(text)
		}
	}
	list("Notes", v.notes)
	list("WRONG", v.wrong)
	if r.failed = v.failed(); !r.failed {
		r.title("%s", fine)
	}
	_ = r.cells.Flush()
	return r
}

// quantile is that of sorted durations, in percent.
func quantile(sorted []time.Duration, percent int) string {
	if len(sorted) == 0 {
		return "-"
	}
	return sorted[(len(sorted)-1)*percent/100].Round(ms / 10).String()
}

// sorted sorts in place.
func sorted(d []time.Duration) []time.Duration {
	slices.Sort(d)
	return d
}
