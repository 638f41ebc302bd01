package inspect

import (
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/workerlease/explain"
)

// mostAlike is how many workers of one reason are explained one by one, and mostNames how many are named in a row.
const mostAlike, mostNames = 5, 6

// saying is what is said of one or more workers.
type saying struct {
	of    explain.Verdict // the first
	names []string
	text  string
}

// whose names the workers.
func (s saying) whose() string {
	var names []string
	for _, name := range s.names[:min(len(s.names), mostNames)] {
		names = append(names, display.Clip(name, mostColumns))
	}
	text := strings.Join(names, ", ")
	if more := len(s.names) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(s.names) > 1 {
		text += ", each:"
	}
	return text
}

// said is why each worker did or didn't get the slot, in the order of the workers: once for those of whom the same is
// said. What differs in details only, such as times, is said of the first few.
func (a answer) said() (all []saying) {
	same := map[string]int{}
	alike := map[explain.Reason]int{}
	called := map[string]int{}
	for _, v := range a.Workers {
		called[nameOf(v)]++
	}
	for _, v := range a.Workers {
		text := a.why(v)
		key := string(v.Reason) + "\n" + text
		i, known := same[key]
		if !known && alike[v.Reason] >= mostAlike {
			key = string(v.Reason)
			text = "Much the same, at other times or for other slots: leasectl why --instance-id LABEL says it."
			i, known = same[key]
		}
		if !known {
			i, same[key] = len(all), len(all)
			all = append(all, saying{of: v, text: text})
			alike[v.Reason]++
		}
		name, pid := nameOf(v), v.Presence.PID
		if v.Term != nil && !v.InRoster {
			pid = v.Term.Record.Worker.PID
		}
		if called[name] > 1 && pid != 0 {
			name += fmt.Sprintf(" (process %d)", pid)
		}
		all[i].names = append(all[i].names, name)
	}
	return all
}
