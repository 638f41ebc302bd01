package linear

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Violation is a part of a history that has no explanation, cut off where the
// last explanation ends.
type Violation struct {
	part partition
	// last are the operations whose answers came last. Before the first of these
	// answers there was an explanation.
	last []*operation
	// before are some of the operations that had ended by then, the latest last.
	before []*operation
}

// shown is the number of earlier operations that a violation lists.
const shown = 12

// judge decides on a part. If it isn't linearizable, judge cuts it off at the earliest
// time that shows it: a history with an explanation had one at all times before. That
// may also decide an undecided part, because a shorter one is easier.
func (p partition) judge(timeout time.Duration) ruling {
	r := p.check(timeout)
	if r.verdict == porcupine.Ok {
		return r
	}
	r.violation = Violation{part: p}
	for _, quick := range []bool{true, false} {
		check := partition.check
		if quick {
			check = partition.plain
		} else if r.verdict != porcupine.Illegal {
			break
		}
		ends := p.ends()
		i := sort.Search(len(ends), func(i int) bool { return check(p.until(ends[i]), timeout/10).verdict != porcupine.Ok })
		if i == len(ends) {
			continue
		}
		if cut := p.until(ends[i]); cut.check(timeout).verdict == porcupine.Illegal {
			r.verdict, r.violation = porcupine.Illegal, cut.violation(ends[i])
			return r
		}
	}
	return r
}

// violation describes a part that can't be explained from an instant on.
func (p partition) violation(at int64) Violation {
	v := Violation{part: p}
	for _, o := range p.ops {
		if o.reply.At == at {
			v.last = append(v.last, o)
		} else {
			v.before = append(v.before, o)
		}
	}
	slices.SortStableFunc(v.before, byStart)
	v.before = v.before[max(0, len(v.before)-shown):]
	return v
}

// String describes the answer that can't be explained, and the operations before it.
func (v Violation) String() string {
	var b strings.Builder
	b.WriteString(v.part.String())
	for _, o := range v.last {
		fmt.Fprintf(&b, "\n\tno explanation for: %s", v.show(o))
	}
	if len(v.before) > 0 {
		b.WriteString("\n\tafter:")
	}
	for _, o := range v.before {
		fmt.Fprintf(&b, "\n\t\t%s", v.show(o))
	}
	return b.String()
}

func (v Violation) show(o *operation) string {
	end := "…"
	if o.reply.At != never {
		end = fmt.Sprint(o.reply.At)
	}
	return fmt.Sprintf("%d–%s %s: %v", o.call.At, end, o.Client, o)
}
