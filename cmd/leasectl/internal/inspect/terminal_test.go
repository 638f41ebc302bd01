package inspect

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// A terminal gets orders: those of the picture, and no others.
func TestARecordDrawsNothingOnATerminal(t *testing.T) {
	const evil = "e\x1b[2J\x1b[H\x1b[31m\x1b[0m\x1b[K\x1b]0;t\a\u009b2J\u202e\u200b\n\u2028x"
	records := func(text string) []store.Record {
		grant, odd, long := recordtest.Grant(1, 0, text), recordtest.Grant(2, 1, text), recordtest.Grant(3, 2, text)
		grant.Group, grant.Schedule, grant.Metadata = text, text, text
		odd.Kind, odd.Metadata = store.Kind(text[:min(len(text), 32)]), text
		long.WindowEnd, long.Claim = long.WindowEnd.AddDate(1, 0, 0), text[:min(len(text), 64)]
		return []store.Record{grant, odd, long, {WorkerType: "export", Seq: 4, Defect: text}}
	}
	drawn := func(text string) string {
		var s snapshot
		err := s.take(t.Context(), blockedBy(records(text)...), Options{WorkerType: "export", Last: 9, Timeout: time.Minute}, 0)
		must(t, err)
		s.store = "sqlite:" + text
		return s.drawing(true, false)
	}
	orders := regexp.MustCompile(`\x1b\[(?:2|3[1-6]|0)m`)
	got, plain := drawn(evil), drawn("e")
	if shown := orders.ReplaceAllString(got, ""); display.Text(shown) != shown {
		t.Errorf("the picture is %q, want no orders but colours", got)
	}
	if n, want := len(orders.FindAllString(got, -1)), len(orders.FindAllString(plain, -1)); n != want || want == 0 {
		t.Errorf("the picture is %q with %d colours, want %d as in %q", got, n, want, plain)
	}
	if n, want := strings.Count(got, "\n"), strings.Count(plain, "\n"); n != want+1 { // The title is too long for one line.
		t.Errorf("the picture has %d lines, want %d as %q, and one for the title", n, want, plain)
	}
}
