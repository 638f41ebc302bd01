package demo

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
)

// screen shows the demo, line by line as it happens.
type screen struct {
	out     io.Writer
	colours bool
}

func (s *screen) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }

func (s *screen) paint(c table.Colour, text string) string { return table.Paint(s.colours, c, text) }

// columns are the least widths of the demo's table. Of 80 columns they leave 22
// for a note.
var columns = []int{4, 13, 6, 4, 13, 6, 0}

func (s *screen) row(cells ...table.Cell) {
	s.printf("%s\n", table.Lines([][]table.Cell{cells}, columns, s.colours)[0])
}

func (s *screen) title(o Options, path string) {
	s.printf("%s\n\n", s.paint(table.Bold, "slotlease demo"))
	s.printf("Three workers, processes of this machine, compete for the worker type %q on\na ledger in one SQLite file:\n%s\n\n", workerType, path)
	s.printf("For each slot of %s one of them gets the lease, by priority. Its work writes\na line every %s, through a fence that refuses a line after a newer holder's.\nHalfway through a slot the leader is killed.\n\n", short(o.Interval), short(heartbeat))
}

func (s *screen) begin(wait time.Duration) {
	s.printf("All three are ready. The first boundary is in %.1f s.\n\n", wait.Seconds())
	s.row(
		table.Right(table.Faint, "SLOT"), table.Left(table.Faint, "START (UTC)"), table.Left(table.Faint, "HOLDER"),
		table.Right(table.Faint, "PRIO"), table.Left(table.Faint, "TOKEN"), table.Right(table.Faint, "GAP"), table.Left(table.Plain, ""),
	)
}

// holderColours distinguish the workers.
var holderColours = map[string]table.Colour{"north": table.Green, "east": table.Yellow, "south": table.Blue}

// slot shows that work began.
func (s *screen) slot(p plan, works []work, w work, all *workers) {
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
	first := names[0]
	if first == all.killed && i > p.kill && i <= p.back {
		first = names[1]
	}
	switch {
	case i == p.kill+1 && w.worker != all.killed:
		note = "took over on time"
	case w.worker != first:
		note = first + " was too late"
	case i > p.kill && w.worker == all.killed && !again:
		note = "is back, by priority"
	}
	s.row(
		table.Right(table.Plain, strconv.Itoa(i+1)), table.Left(table.Plain, display.Clock(w.slot)), table.Left(holderColours[w.worker], w.worker),
		table.Right(table.Plain, strconv.Itoa(priorityOf(w.worker))), table.Left(table.Plain, strconv.FormatInt(w.token, 10)), table.Right(table.Plain, gap),
		table.Left(table.Faint, note),
	)
}

// event shows something that the demo did.
func (s *screen) event(at time.Time, text string, c table.Colour) {
	s.row(table.Right(table.Plain, ""), table.Left(table.Faint, display.Clock(at)), table.Left(c, text))
}

// short is a duration for people.
func short(d time.Duration) string {
	if d.Abs() < time.Second {
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
}

func (s *screen) summary(v verdict) {
	var holders []string
	for _, name := range names {
		holders = append(holders, fmt.Sprintf("%s %d", name, v.holders[name]))
	}
	ledger := "tokens increase, windows are disjoint, all work granted"
	if len(v.ledger) > 0 {
		ledger = strings.Join(v.ledger, "; ")
	}
	over := cmp.Or(v.successor, "nobody") + " took over"
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
		{"cut short", len(v.cut), v.successor != "", strings.Join(append(v.cut, over), "; ")},
		{"missed", len(v.missed), true, strings.Join(v.missed, ", ")},
		{"overlaps", len(v.overlaps), len(v.overlaps) == 0, fmt.Sprintf("by the %d lines that the fence let through %s", v.lines, strings.Join(v.overlaps, "; "))},
		{"late lines", v.late, true, "refused by the fence"},
		{"boundaries", len(v.gaps), true, gaps},
		{"records", v.records, len(v.ledger) == 0, ledger},
	}
	var rows [][]table.Cell
	for _, l := range lines {
		mark, c := "✓", table.Green
		if !l.good {
			mark, c = "✗", table.Red
		}
		rows = append(rows, []table.Cell{table.Left(c, mark), table.Left(table.Plain, l.name), table.Right(table.Bold, strconv.Itoa(l.value)), table.Left(table.Plain, strings.TrimSpace(l.note))})
	}
	s.printf("\n%s\n", s.paint(table.Bold, "Summary"))
	for _, line := range table.Lines(rows, nil, s.colours) {
		s.printf("%s\n", line)
	}
	if len(v.wrong) == 0 {
		s.printf("\n%s\n", s.paint(table.Green, "All as it should be: never two at once, and another worker took over from the\none that was killed."))
	}
}
