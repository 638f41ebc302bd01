package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

func TestAReleasedWindowMayBeTakenByAnother(t *testing.T) {
	first := recordtest.Grant(1, 0, "a")
	second := recordtest.Grant(3, 0, "b")
	second.Token++
	second.WindowStart = recordtest.Noon.Add(time.Minute)
	if got := Ledger([]store.Record{first, recordtest.Release(first, 2, recordtest.Noon.Add(time.Minute)), second}); len(got) != 0 {
		t.Errorf("Ledger() = %q, want nothing wrong", got)
	}
}

func TestAnExtensionHasTheTokenOfItsTermAndLeavesNoGap(t *testing.T) {
	minute := recordtest.Minutes
	for name, c := range map[string]struct {
		spoil func(r *store.Record)
		want  string
	}{
		"as it should be": {func(*store.Record) {}, ""},
		"a new token":     {func(r *store.Record) { r.Token++ }, "record 2: extends a term with the token 1772452800001, not 1772452800000"},
		"a gap":           {func(r *store.Record) { r.WindowStart = minute(1.5) }, "record 2: extends a term that ended at 2026-03-02T12:01:00.000Z from 2026-03-02T12:01:30.000Z on"},
		"an overlap":      {func(r *store.Record) { r.WindowStart = minute(0.5) }, "record 2: window from 2026-03-02T12:00:30.000Z overlaps one to 2026-03-02T12:01:00.000Z"},
	} {
		first := recordtest.Grant(1, 0, "a")
		first.WindowEnd = minute(1)
		second := first
		second.Seq, second.WindowStart, second.WindowEnd = 2, minute(1), minute(2)
		c.spoil(&second)
		if got := strings.Join(Ledger([]store.Record{first, second}), "\n"); got != c.want {
			t.Errorf("%s: Ledger() = %q, want %q", name, got, c.want)
		}
	}
}
