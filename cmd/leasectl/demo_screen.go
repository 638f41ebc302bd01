package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// screen shows the demo, line by line as it happens.
type screen struct {
	*app
	colours bool
}

func newScreen(a *app) *screen { return &screen{app: a, colours: a.colour()} }

func (s *screen) paint(c colour, text string) string { return paint(s.colours, c, text) }

// columns are the least widths of the demo's table. Of 80 columns they leave 22
// for a note.
var columns = []int{4, 13, 6, 4, 13, 6, 0}

func (s *screen) row(cells ...cell) {
	s.printf("%s\n", align([][]cell{cells}, columns, s.colours)[0])
}

func (s *screen) title(f demoFlags, path string) {
	s.printf("%s\n\n", s.paint(bold, "slotlease demo"))
	s.printf("Three workers, processes of this machine, compete for the worker type %q on\na ledger in one SQLite file:\n%s\n\n", demoType, path)
	s.printf("For each slot of %s one of them gets the lease, by priority. Its work writes\na line every %s. Halfway through a slot the leader is killed.\n\n", short(f.interval), short(heartbeat))
}

func (s *screen) begin(wait time.Duration) {
	s.printf("All three are ready. The first boundary is in %.1f s.\n\n", wait.Seconds())
	s.row(
		cell{"SLOT", faint, true}, cell{"START (UTC)", faint, false}, cell{"HOLDER", faint, false},
		cell{"PRIO", faint, true}, cell{"TOKEN", faint, false}, cell{"GAP", faint, true}, cell{"", plain, false},
	)
}

// holderColours tell the workers apart.
var holderColours = map[string]colour{"north": green, "east": yellow, "south": blue}

// slot shows that work began.
func (s *screen) slot(p demoPlan, works []work, w work, c *cast) {
	i := p.index(w.slot)
	var before work // of the slot before
	again := false  // this worker worked since the leader was killed
	for _, o := range works {
		j := p.index(o.slot)
		if j == i-1 && j >= 0 {
			before = o
		}
		again = again || o.worker == w.worker && j > p.kill && j < i
	}
	gap, note := "", ""
	if !before.begin.IsZero() {
		gap = short(w.begin.Sub(before.end))
	}
	first := castNames[0]
	if first == c.killed && i > p.kill && i <= p.back {
		first = castNames[1]
	}
	switch {
	case i == p.kill+1 && w.worker != c.killed:
		note = "took over on time"
	case w.worker != first:
		note = first + " was too late"
	case i > p.kill && w.worker == c.killed && !again:
		note = "is back, by priority"
	}
	s.row(
		cell{strconv.Itoa(i + 1), plain, true}, cell{clockOf(w.slot), plain, false}, cell{w.worker, holderColours[w.worker], false},
		cell{strconv.Itoa(c.priorityOf(w.worker)), plain, true}, cell{strconv.FormatInt(w.token, 10), plain, false}, cell{gap, plain, true},
		cell{note, faint, false},
	)
}

// event shows something that the demo did.
func (s *screen) event(at time.Time, text string, c colour) {
	s.row(cell{"", plain, true}, cell{clockOf(at), faint, false}, cell{text, c, false})
}

// short is a duration as people read it.
func short(d time.Duration) string {
	if d.Abs() < time.Second {
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
}

func (s *screen) summary(v verdict) {
	var holders []string
	for _, name := range castNames {
		holders = append(holders, fmt.Sprintf("%s %d", name, v.holders[name]))
	}
	ledger := "tokens increase, windows are disjoint, all work inside"
	if len(v.ledger) > 0 {
		ledger = strings.Join(v.ledger, "; ")
	}
	gaps := "none measured"
	if n := len(v.gaps); n > 0 {
		gaps = fmt.Sprintf("median %s, max %s between two holders' lines", short(v.median()), short(v.gaps[n-1]))
	}
	lines := []struct {
		name  string
		value int
		good  bool
		note  string
	}{
		{"slots", v.slots, true, strings.Join(holders, ", ")},
		{"cut short", len(v.cut), len(v.cut) == 1, strings.Join(v.cut, "; ")},
		{"missed", len(v.missed), len(v.missed) == 0, strings.Join(v.missed, ", ")},
		{"overlaps", len(v.overlaps), len(v.overlaps) == 0, fmt.Sprintf("by the %d lines that the work wrote %s", v.lines, strings.Join(v.overlaps, "; "))},
		{"boundaries", len(v.gaps), true, gaps},
		{"records", v.records, len(v.ledger) == 0, ledger},
	}
	var rows [][]cell
	for _, l := range lines {
		mark, c := "✓", green
		if !l.good {
			mark, c = "✗", red
		}
		rows = append(rows, []cell{{mark, c, false}, {l.name, plain, false}, {strconv.Itoa(l.value), bold, true}, {strings.TrimSpace(l.note), plain, false}})
	}
	s.printf("\n%s\n", s.paint(bold, "Summary"))
	for _, line := range align(rows, nil, s.colours) {
		s.printf("%s\n", line)
	}
	if len(v.wrong) == 0 {
		s.printf("\n%s\n", s.paint(green, "All as it should be: never two at once, and a lost worker costs no more than\nthe rest of its slot."))
	}
}
