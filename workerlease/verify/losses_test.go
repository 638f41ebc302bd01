package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// A slot without records may be one whose records are lost: more workers don't help then.
func TestASlotThatNobodyClaimedMayBeLost(t *testing.T) {
	first, second := recordtest.Grant(1, 0, "a"), recordtest.Grant(2, 3, "a")
	lost := recordtest.Told(second, 3, store.Outcome{})
	lost.Metadata = store.Lost{Seq: 5, Token: recordtest.Minutes(5).UnixMilli(), Claim: "lost", InstanceID: "b", Start: recordtest.Minutes(5), End: recordtest.Minutes(10)}.Metadata()
	for _, records := range [][]store.Record{{first, second}, {first, second, lost}, {first, second, lost, recordtest.Grant(4, 9, "a")}} {
		v := verify.New(verify.Options{WorkerType: "export", Now: recordtest.Minutes(46)})
		for _, r := range records {
			v.Add(r)
		}
		for range 2 { // It can be asked again.
			all := v.Report().Findings
			for _, f := range all {
				if f.Code == verify.MissedSlots && strings.Contains(f.Remedy, "see records-lost") != (f.Seq == 2 && len(records) > 2) {
					t.Errorf("of %d records verify finds %+v, want those before what is said to be lost told apart", len(records), f)
				}
			}
			if !slices.ContainsFunc(all, func(f verify.Finding) bool { return f.Code == verify.MissedSlots && f.Seq == 2 }) {
				t.Errorf("of %d records verify finds %+v", len(records), all)
			}
		}
	}
}

// What a store has lost is a warning, and a fault if another had a lease meanwhile, whenever that was granted.
func TestALeaseBesideOneThatWasLostIsAFault(t *testing.T) {
	minutes := recordtest.Minutes
	below := recordtest.Grant(1, 0, "a")
	lost := store.Lost{Seq: 2, Token: minutes(5).UnixMilli(), Claim: "lost", InstanceID: "b", Start: minutes(5), End: minutes(10)}
	tells := func(grant store.Record, seq int64, l store.Lost) store.Record {
		r := recordtest.Told(grant, seq, store.Outcome{})
		r.Metadata = l.Metadata()
		return r
	}
	says := func(grant store.Record, seq int64) store.Record { return tells(grant, seq, lost) }
	beside, after := recordtest.Grant(2, 1, "c"), recordtest.Grant(2, 2, "c")
	later := recordtest.Grant(3, 1, "c")
	own := beside
	own.Claim, own.Token = lost.Claim, lost.Token
	a := recordtest.Part(1, recordtest.Grant(1, 1, "a"), 5, 7)
	c := recordtest.Part(3, later, 6, 10)
	c.Token = minutes(6).UnixMilli() + 1
	operator := recordtest.Part(2, a, 6, 6)
	operator.Kind, operator.Claim, operator.InstanceID, operator.Token = store.KindOverride, "op", "op", minutes(6).UnixMilli()
	ofA := lost
	ofA.Token, ofA.Claim, ofA.InstanceID, ofA.End = a.Token, a.Claim, "a", minutes(9)
	isA := ofA
	isA.Seq, isA.End = 1, a.WindowEnd
	short, ahead, kin, deep, unknown := lost, lost, lost, lost, lost
	short.Start, short.End, ahead.Start, kin.Group, deep.Seq, unknown.Start = minutes(7), minutes(7.5), minutes(9), "eu", 7, time.Time{}
	onA, released := lost, lost
	onA.Start = minutes(7)
	released.Seq, released.End = 3, minutes(6)
	orders := ofA
	orders.Seq = 4
	next, late := lost, lost
	next.Start, next.Token, late.Start = minutes(6), minutes(6).UnixMilli()+1, minutes(8)
	early, beyond, mine, after4 := recordtest.Part(2, c, 6, 10), recordtest.Part(4, c, 8, 10), recordtest.Grant(2, 1, "b"), recordtest.Grant(4, 2, "d")
	beyond.Token = minutes(8).UnixMilli()
	ended := operator
	ended.Seq, ended.WindowStart, ended.WindowEnd, ended.Token = 3, minutes(7), minutes(7), minutes(7).UnixMilli()
	ofKin := beside
	ofKin.Group = "eu"
	far := next // many records above
	far.Seq = 9
	workedOn := recordtest.Outcome(beside, minutes(7), store.Succeeded)
	workedOn.InstanceID = "c"
	above := next // of the same term as the one that is next
	above.Seq = 3
	left := recordtest.Grant(1, 1, "a") // It was appended ahead, and its holder released before: that is lost, too.
	left.WindowStart, left.ReadAt, left.FixedAt = minutes(7), minutes(5), minutes(5)
	ofLater := recordtest.Outcome(recordtest.Grant(5, 2, "a"), minutes(12), store.Succeeded)
	for name, c := range map[string]struct {
		records []store.Record
		want    []string
	}{
		"also where its extension is lost":               {[]store.Record{below, beside, tells(beside, 3, next), tells(beside, 4, above)}, []string{"fault granted-beside-lost 2", "warning records-lost 3", "warning records-lost 4"}},
		"an extension that was released before it began": {[]store.Record{left, tells(left, 2, far)}, []string{"warning records-lost 2"}},
		"what came of another attempt":                   {[]store.Record{left, tells(left, 2, far), recordtest.Told(left, 3, ofLater)}, []string{"warning records-lost 2"}},
		"another had it at that key":                     {[]store.Record{below, beside, tells(beside, 3, next)}, []string{"fault granted-beside-lost 2", "warning records-lost 3"}},
		"above another, whose end is lost":               {[]store.Record{below, beside, tells(beside, 3, far)}, []string{"warning records-lost 3"}},
		"beside another that worked on":                  {[]store.Record{below, beside, recordtest.Told(beside, 3, workedOn), tells(beside, 4, far)}, []string{"fault granted-beside-lost 2", "warning records-lost 4"}},
		"another had it already":                         {[]store.Record{below, beside, says(beside, 3)}, []string{"fault granted-beside-lost 2", "warning records-lost 3"}},
		"another gets it yet":                            {[]store.Record{below, says(below, 2), later}, []string{"warning records-lost 2", "fault granted-beside-lost 3"}},
		"two have noticed":                               {[]store.Record{below, beside, says(beside, 3), says(beside, 4)}, []string{"fault granted-beside-lost 2", "warning records-lost 3"}},
		"only after that":                                {[]store.Record{below, after, says(after, 3)}, []string{"warning records-lost 3"}},
		"it was appended again":                          {[]store.Record{below, own, says(own, 3)}, []string{"warning records-lost 3"}},
		"its holder has released":                        {[]store.Record{a, recordtest.Release(a, 2, minutes(6)), c, tells(c, 4, ofA)}, []string{"warning records-lost 4"}},
		"its holder releases yet":                        {[]store.Record{a, tells(a, 2, ofA), recordtest.Release(a, 3, minutes(6)), recordtest.Part(4, c, 6, 10)}, []string{"warning records-lost 2"}},
		"an operator has ended it":                       {[]store.Record{a, operator, c, tells(c, 4, ofA)}, []string{"note override 2", "warning records-lost 4"}},
		"several are lost":                               {[]store.Record{below, beside, tells(beside, 3, deep)}, []string{"fault granted-beside-lost 2", "warning records-lost 3"}},
		"all is lost":                                    {[]store.Record{recordtest.Part(1, c, 6, 10), tells(recordtest.Part(1, c, 6, 10), 2, deep)}, []string{"fault granted-beside-lost 1", "warning records-lost 2"}},
		"bookkeeping is lost, too":                       {[]store.Record{a, recordtest.Release(a, 2, minutes(6)), c, tells(c, 4, orders)}, []string{"warning records-lost 4"}},
		"since when isn't known":                         {[]store.Record{below, beside, tells(beside, 3, unknown)}, []string{"warning records-lost 3"}},
		"another knows since when":                       {[]store.Record{below, beside, tells(beside, 3, unknown), tells(beside, 4, lost)}, []string{"fault granted-beside-lost 2", "warning records-lost 3"}},
		"another knew since when":                        {[]store.Record{below, beside, tells(beside, 3, lost), tells(beside, 4, unknown)}, []string{"fault granted-beside-lost 2", "warning records-lost 3"}},
		"it was released, and lost":                      {[]store.Record{below, recordtest.Part(2, c, 6, 10), tells(c, 3, lost), tells(c, 4, released)}, []string{"warning records-lost 3", "warning records-lost 4"}},
		"a release is lost, too":                         {[]store.Record{a, tells(a, 2, next)}, []string{"warning records-lost 2"}},
		"another has released":                           {[]store.Record{below, early, recordtest.Release(early, 3, minutes(7)), after4, tells(after4, 5, late)}, []string{"warning records-lost 5"}},
		"an override right below":                        {[]store.Record{a, operator, tells(operator, 3, next), beyond}, []string{"note override 2", "warning records-lost 3", "fault granted-beside-lost 4"}},
		"another was ended":                              {[]store.Record{below, early, ended, after4, tells(after4, 5, late)}, []string{"note override 3", "warning records-lost 5"}},
		"it has come again":                              {[]store.Record{below, mine, tells(mine, 3, lost)}, []string{"warning records-lost 3"}},
		"it is there":                                    {[]store.Record{a, tells(a, 2, isA)}, []string{}},
		"a lease was extended":                           {[]store.Record{a, recordtest.Part(2, a, 7, 9), tells(recordtest.Part(2, a, 7, 9), 3, onA)}, []string{"fault granted-beside-lost 2", "warning records-lost 3"}},
		"a lease is extended yet":                        {[]store.Record{a, tells(a, 2, onA), recordtest.Part(3, a, 7, 9)}, []string{"warning records-lost 2", "fault granted-beside-lost 3", "warning run-cut 3"}},
		"one extension of two":                           {[]store.Record{a, recordtest.Part(2, a, 7, 8), recordtest.Part(3, a, 8, 10), tells(recordtest.Part(3, a, 8, 10), 4, short)}, []string{"fault granted-beside-lost 2", "warning records-lost 4"}},
		"it was granted ahead":                           {[]store.Record{a, recordtest.Part(2, a, 7, 9), tells(recordtest.Part(2, a, 7, 9), 3, ahead)}, []string{"warning records-lost 3"}},
		"another of its group":                           {[]store.Record{below, ofKin, tells(ofKin, 3, kin)}, []string{"warning records-lost 3"}},
		"nobody gets it":                                 {[]store.Record{below, says(below, 2)}, []string{"warning records-lost 2"}},
	} {
		got := slices.DeleteFunc(found(c.records, minutes(16)), func(text string) bool { return strings.Contains(text, string(verify.MissedSlots)) })
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// However long ago the records are by which a loss was judged: it is found, and once.
func TestALossIsJudgedOnceInALongLedger(t *testing.T) {
	lost := store.Lost{Seq: 2, Token: recordtest.Minutes(5).UnixMilli(), Claim: "lost", InstanceID: "b", Start: recordtest.Minutes(5), End: recordtest.Minutes(10)}
	says := func(g store.Record, seq int64) store.Record {
		r := recordtest.Told(g, seq, store.Outcome{})
		r.Metadata = lost.Metadata()
		return r
	}
	beside := recordtest.Grant(2, 1, "c")
	records := []store.Record{recordtest.Grant(1, 0, "a"), beside, says(beside, 3)}
	for seq := int64(4); seq < 3000; seq++ {
		g := recordtest.Grant(seq, int(seq), "c")
		g.Claim = fmt.Sprint("c", seq)
		if records = append(records, g); seq == 1500 {
			seq++
			records = append(records, says(g, seq))
		}
	}
	got := slices.DeleteFunc(found(records, recordtest.Minutes(16000)), func(text string) bool { return !strings.Contains(text, "lost") })
	if diff := cmp.Diff([]string{"fault granted-beside-lost 2", "warning records-lost 3"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
