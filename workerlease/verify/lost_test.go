package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// What a store has lost is a warning, and a fault if another had a lease meanwhile, whenever that was granted.
func TestALeaseBesideOneThatWasLostIsAFault(t *testing.T) {
	minutes := recordtest.Minutes
	below := recordtest.Grant(1, 0, "a")
	lost := store.Lost{Seq: 2, Token: minutes(5).UnixMilli(), Claim: "lost", InstanceID: "b", End: minutes(10)}
	says := func(grant store.Record, seq int64) store.Record {
		r := recordtest.Told(grant, seq, store.Outcome{})
		r.Metadata = lost.Metadata()
		return r
	}
	beside, after := recordtest.Grant(2, 1, "c"), recordtest.Grant(2, 2, "c")
	later := recordtest.Grant(3, 1, "c")
	own := beside
	own.Claim, own.Token = lost.Claim, lost.Token
	for name, c := range map[string]struct {
		records []store.Record
		want    []string
	}{
		"another had it already": {[]store.Record{below, beside, says(beside, 3)}, []string{"fault granted-beside-lost 2", "warning records-lost 3"}},
		"another gets it yet":    {[]store.Record{below, says(below, 2), later}, []string{"warning records-lost 2", "fault granted-beside-lost 3"}},
		"two have noticed":       {[]store.Record{below, beside, says(beside, 3), says(beside, 4)}, []string{"fault granted-beside-lost 2", "warning records-lost 3"}},
		"only after that":        {[]store.Record{below, after, says(after, 3)}, []string{"warning records-lost 3"}},
		"it was appended again":  {[]store.Record{below, own, says(own, 3)}, []string{"warning records-lost 3"}},
		"nobody gets it":         {[]store.Record{below, says(below, 2)}, []string{"warning records-lost 2"}},
	} {
		got := slices.DeleteFunc(found(c.records, minutes(16)), func(text string) bool { return strings.Contains(text, string(verify.MissedSlots)) })
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
