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
	slots     int
	holders   map[string]int // slots by holder
	lines     int            // that the fence let through
	late      int            // lines that it refused
	cut       []string       // the slot that was cut short
	successor string         // who took over from the worker that was killed
	missed    []string
	overlaps  []string
	gaps      []time.Duration // at boundaries, sorted, without that after the cut slot
	records   int
	ledger    []string // problems of the ledger, or of the works against it

	wrong []error // all problems
}

// judge computes the verdict from the lines that the fence let through, and separately from
// the ledger (newest record first). What differs on a busy machine is counted, and not judged.
func judge(p plan, fell work, lines []Line, late int, records []store.Record, zero time.Time) verdict {
	works := worksOf(lines, zero)
	v := verdict{
		slots: p.slots, holders: map[string]int{}, lines: len(lines), late: late, records: len(records),
		overlaps: overlaps(works), successor: successor(works, fell),
	}
	v.countSlots(p, works, fell)
	ledger := slices.Clone(records)
	slices.Reverse(ledger)
	v.ledger = append(verify.Strict(ledger), checkWorks(works, ledger)...)

	if v.successor == "" {
		v.wrong = append(v.wrong, fmt.Errorf("demo: nobody took over from %s", fell.worker))
	}
	if len(v.overlaps) > 0 {
		v.wrong = append(v.wrong, fmt.Errorf("demo: %d times two worked at once: %q", len(v.overlaps), v.overlaps))
	}
	for _, problem := range v.ledger {
		v.wrong = append(v.wrong, errors.New("demo: ledger: "+problem))
	}
	return v
}

// countSlots looks at each slot of the plan.
func (v *verdict) countSlots(p plan, works []work, fell work) {
	last := map[int]work{} // of each slot
	for _, w := range works {
		i := p.index(w.slot)
		if i < 0 {
			continue
		}
		if _, more := last[i]; !more {
			v.holders[w.worker]++
			if before, ok := last[i-1]; ok && before.token != fell.token {
				v.gaps = append(v.gaps, w.begin.Sub(before.end))
			}
		}
		last[i] = w
	}
	for i := range p.slots {
		if w, ok := last[i]; !ok {
			v.missed = append(v.missed, display.Clock(p.start(i)))
		} else if w.token == fell.token {
			v.cut = append(v.cut, fmt.Sprintf("%s, %s after %v", display.Clock(w.slot), w.worker, w.end.Sub(w.begin).Round(10*time.Millisecond)))
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

// overlaps finds works whose token goes back, and those that go on after another's line.
func overlaps(works []work) (found []string) {
	for i := 1; i < len(works); i++ {
		w, before := works[i], works[i-1]
		same := func(o work) bool { return o.pid == w.pid && o.token == w.token }
		if w.token < before.token || slices.ContainsFunc(works[:i], same) {
			found = append(found, fmt.Sprintf("%s (token %d) after %s (token %d)", w.worker, w.token, before.worker, before.token))
		}
	}
	return found
}

// checkWorks checks that each work was done by the holder of its token.
func checkWorks(works []work, records []store.Record) (problems []string) {
	holders := map[int64]string{}
	for _, r := range records {
		if r.Kind == store.KindGrant {
			holders[r.Token] = r.InstanceID
		}
	}
	for _, w := range works {
		if holders[w.token] != w.worker {
			problems = append(problems, fmt.Sprintf("%s worked with token %d, which it was not granted", w.worker, w.token))
		}
	}
	return problems
}
