package inspect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// past are the slots of some records at 46 minutes after noon.
func past(records ...store.Record) []history.Entry {
	return history.Read(records, recordtest.Minutes(46), nil)
}

// pictured is a chart of all that may show.
func pictured(width int) chart {
	grant, minutes := recordtest.Grant, recordtest.Minutes
	failing := grant(3, 4, "bert")
	goesOn := recordtest.Part(1, grant(1, 0, "anna"), 0, 5)
	takeover := recordtest.Part(5, grant(5, 5, "carla"), 27, 30)
	rows := []chartRow{
		{workerType: "invoice-export", entries: past(
			grant(1, 0, "anna"), grant(2, 1, "anna"), failing,
			recordtest.Told(failing, 4, recordtest.Outcome(failing, minutes(21), store.Failed)),
			takeover, recordtest.Release(takeover, 6, minutes(28)), grant(7, 8, "bert"), grant(8, 9, "bert"), grant(9, 10, "anna"),
		)},
		{workerType: "leader", entries: past(goesOn, recordtest.NextSlot(2, goesOn, 1, 5, 50))},
		{workerType: "mail\x1b[31m\u202e", entries: past(grant(1, 2, "an instance with a name that is quite long"))},
		{workerType: "no slots yet"},
	}
	return chart{from: minutes(-2), to: minutes(52), now: minutes(46), rows: rows, width: width}
}

func TestChart(t *testing.T) {
	var b strings.Builder
	for _, width := range []int{40, 80, 120} {
		text := pictured(width).text(false)
		fmt.Fprintf(&b, "%d columns\n\n%s\n", width, text)
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if n := display.Width(line); n > width || line != strings.TrimRight(line, " ") || line != display.Flat(line) {
				t.Errorf("a line of %d columns, want %d at most, without blanks at its end or control characters: %q", n, width, line)
			}
		}
	}
	fmt.Fprintf(&b, "with colours\n\n%s", pictured(80).text(true))
	golden.Compare(t, "timeline.text", b.String())
}

// A slot of a second that nobody had shows in a chart of a day.
func TestNoMissIsHidden(t *testing.T) {
	minutes := recordtest.Minutes
	entry := func(state history.State, from, to time.Time) history.Entry {
		e := history.Entry{State: state, Count: 1, Record: store.Record{Kind: store.KindGrant, InstanceID: "a"}}
		e.Slot.Start, e.Slot.End = from, to
		e.Window = e.Slot
		return e
	}
	missed := entry(history.Missed, minutes(600), minutes(600).Add(time.Second))
	missed.Record = store.Record{}
	for name, entries := range map[string][]history.Entry{
		"before what is held": {missed, entry(history.Expired, minutes(0), minutes(1400))},
		"after what failed":   {entry(history.Failed, minutes(0), minutes(600).Add(time.Minute)), missed},
	} {
		c := chart{from: minutes(0), to: minutes(1440), now: minutes(1440), rows: []chartRow{{workerType: "t", entries: entries}}, width: 80}
		if row := strings.Split(c.text(false), "\n")[2]; strings.Count(row, "·") != 1 {
			t.Errorf("%s: the chart is\n%s\nwant one column that nobody had", name, c.text(false))
		}
	}
}

// A lease that goes on shows at once that its work has failed, where it did.
func TestAFailureShowsWhereItWas(t *testing.T) {
	minutes := recordtest.Minutes
	g := recordtest.Grant(1, 0, "a")
	g.SlotEnd, g.WindowEnd, g.Schedule = minutes(1440), minutes(1440), "every 1440m"
	told := recordtest.Told(g, 2, recordtest.Outcome(g, minutes(10), store.Failed))
	c := chart{from: minutes(0), to: minutes(60), now: minutes(50), width: 63}
	c.rows = []chartRow{{workerType: "t", entries: history.Read([]store.Record{told, g}, minutes(50), nil)}}
	if row := strings.Split(c.text(false), "\n")[2]; []rune(row)[3+10] != '✗' {
		t.Errorf("the chart is\n%s\nwant the sign of a failure in the tenth minute", c.text(false))
	}
}

func TestLabelsOfAnAxisStandApart(t *testing.T) {
	minutes := recordtest.Minutes
	for _, length := range []float64{1, 60, 720, 3 * 1440, 31 * 1440} {
		for _, width := range []int{20, 40, 120} {
			c := chart{from: minutes(-length), to: minutes(0), now: minutes(0), width: width, rows: []chartRow{{workerType: "t"}}}
			labels := strings.Fields(c.axis(width)[0])
			for _, label := range labels {
				if len(label) != len("15:04") && len(label) != len("15:04:05") {
					t.Errorf("%v minutes in %d columns: the labels are %q, want them apart", length, width, labels)
				}
			}
		}
	}
}

func TestManyHoldersHaveNoLetter(t *testing.T) {
	var row chartRow
	for i := range 60 {
		g := recordtest.Grant(int64(i+1), i, fmt.Sprintf("worker-%02d", i))
		row.entries = append(row.entries, history.Read([]store.Record{g}, recordtest.Minutes(400), nil)[0])
	}
	c := chart{from: recordtest.Noon, to: recordtest.Minutes(300), now: recordtest.Minutes(300), rows: []chartRow{row}, width: 130}
	if text := c.text(false); !strings.Contains(text, "z worker-51") || !strings.Contains(text, "? 8 others") || strings.Contains(text, "worker-52") {
		t.Errorf("the chart of 60 holders is\n%s\nwant letters for 52 of them", text)
	}
}
