package demo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// verdict is the result of the demo.
type verdict struct {
	slots    int
	holders  map[string]int // slots by holder
	lines    int            // of the work log
	cut      []string       // slots that were cut short
	missed   []string
	overlaps []string
	gaps     []time.Duration // at boundaries, sorted, without those after a cut slot
	records  int
	ledger   []string // problems of the ledger, or of the works against it
	killed   string   // the worker of the slot that was cut short
	back     bool     // it held the lease again

	wrong []error // all problems
}

// judge computes the verdict from the lines that the works wrote, and separately from the
// ledger (newest record first).
func judge(p plan, lines []Line, records []store.Record, zero time.Time) verdict {
	v := verdict{slots: p.slots, holders: map[string]int{}, lines: len(lines), records: len(records)}
	works := worksOf(lines, zero)
	v.overlaps = overlaps(works)
	v.judgeSlots(p, works)
	ledger := slices.Clone(records)
	slices.Reverse(ledger)
	v.ledger = append(verify.Strict(ledger), checkWorks(works, ledger)...)

	expect := func(ok bool, format string, args ...any) {
		if !ok {
			v.wrong = append(v.wrong, fmt.Errorf("demo: "+format, args...))
		}
	}
	expect(len(v.cut) == 1, "%d slots were cut short, want 1: %q", len(v.cut), v.cut)
	expect(len(v.missed) == 0, "%d slots were missed: %q", len(v.missed), v.missed)
	expect(len(v.overlaps) == 0, "%d times two worked at once: %q", len(v.overlaps), v.overlaps)
	// On a busy machine another than the favourite may have had the slot, and doesn't get it back.
	expect(v.back || slices.Contains(names[1:], v.killed), "the killed worker did not get the lease back")
	for _, problem := range v.ledger {
		v.wrong = append(v.wrong, errors.New("demo: ledger: "+problem))
	}
	return v
}

// judgeSlots looks at each slot of the plan.
func (v *verdict) judgeSlots(p plan, works []work) {
	var before *work // of the slot before, unless that was cut short or missed
	for i := range p.slots {
		var of []work
		for _, w := range works {
			if w.slot.Equal(p.start(i)) {
				of = append(of, w)
			}
		}
		if len(of) == 0 {
			v.missed = append(v.missed, display.Clock(p.start(i)))
			before = nil
			continue
		}
		first, last := of[0], of[len(of)-1]
		v.holders[first.worker]++
		if before != nil {
			v.gaps = append(v.gaps, first.begin.Sub(before.end))
		}
		if i > p.back && first.worker == v.killed {
			v.back = true
		}
		before = &last
		if early := p.start(i + 1).Sub(last.end); early > p.interval/3 {
			v.cut = append(v.cut, fmt.Sprintf("%s, %s after %v", display.Clock(p.start(i)), last.worker, last.end.Sub(last.begin).Round(10*time.Millisecond)))
			v.killed, before = last.worker, nil
		}
	}
	slices.Sort(v.gaps)
}

// median is that of the gaps; zero without any.
func (v verdict) median() time.Duration {
	n := len(v.gaps)
	if n == 0 {
		return 0
	}
	return (v.gaps[(n-1)/2] + v.gaps[n/2]) / 2
}

// overlaps finds works that began before another had ended.
func overlaps(works []work) (found []string) {
	for i := 1; i < len(works); i++ {
		for _, earlier := range works[:i] {
			if works[i].begin.Before(earlier.end) {
				found = append(found, fmt.Sprintf("%s (token %d) and %s (token %d)", earlier.worker, earlier.token, works[i].worker, works[i].token))
			}
		}
	}
	return found
}

// checkWorks checks that each work was done by the holder of its token, inside the window
// that was granted.
func checkWorks(works []work, records []store.Record) (problems []string) {
	grants := map[int64]store.Record{}
	for _, r := range records {
		if r.Kind == store.KindGrant {
			grants[r.Token] = r
		}
	}
	for _, w := range works {
		g, granted := grants[w.token]
		switch {
		case !granted || g.InstanceID != w.worker:
			problems = append(problems, fmt.Sprintf("%s worked with token %d, which it was not granted", w.worker, w.token))
		case w.begin.Before(g.WindowStart) || !w.end.Before(g.WindowEnd):
			problems = append(problems, fmt.Sprintf("%s worked from %s to %s, outside its window from %s to %s", w.worker,
				display.Clock(w.begin), display.Clock(w.end), display.Clock(g.WindowStart), display.Clock(g.WindowEnd)))
		}
	}
	return problems
}
