package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

var noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// grant is a grant from some minutes after noon on, for 5.
func grant(seq int64, minute int, change ...func(*store.Record)) store.Record {
	r := storetest.Grant("job", seq)
	r.Claim = fmt.Sprint("claim ", seq)
	r.WindowStart = noon.Add(time.Duration(minute) * time.Minute)
	r.WindowEnd, r.Token, r.ReadAt = r.WindowStart.Add(5*time.Minute), r.WindowStart.UnixMilli(), r.WindowStart
	for _, f := range change {
		f(&r)
	}
	return r
}

// ends makes a record one that ends a term.
func ends(kind store.Kind, of store.Record) func(*store.Record) {
	return func(r *store.Record) {
		r.Kind, r.WindowEnd = kind, r.WindowStart
		if kind == store.KindRelease {
			r.Claim, r.Token = of.Claim, of.Token
		}
	}
}

func unreadable(seq int64) store.Record {
	return store.Record{WorkerType: "job", Seq: seq, Defect: "claim is missing"}
}

func TestReadShowsWhichTermsMayBeInForce(t *testing.T) {
	of := func(first store.Record) func(*store.Record) {
		return func(r *store.Record) { r.Claim, r.Token = first.Claim, first.Token }
	}
	long := func(r *store.Record) { r.WindowEnd = r.WindowStart.Add(ledger.Longest + time.Millisecond) }
	one, two := grant(1, 0), grant(2, 5)
	far := func(r *store.Record) { // No worker obeys it before the year 2100.
		r.WindowStart = time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)
		r.WindowEnd, r.Token = r.WindowStart, r.WindowStart.UnixMilli()
	}
	for what, c := range map[string]struct {
		records      []store.Record // oldest first
		cut          bool           // there are more below
		want         []int64        // the terms, newest first
		head, unread int64
	}{
		"nothing":                               {},
		"two terms":                             {records: []store.Record{one, two}, want: []int64{2, 1}, head: 2},
		"a released term":                       {records: []store.Record{one, grant(2, 1, ends(store.KindRelease, one))}, head: 2},
		"a released term of two windows":        {records: []store.Record{one, grant(2, 5, of(one)), grant(3, 6, ends(store.KindRelease, one))}, head: 3},
		"a release, of the lease before":        {records: []store.Record{one, two, grant(3, 6, ends(store.KindRelease, one))}, want: []int64{2, 1}, head: 3},
		"a release of another token":            {records: []store.Record{one, grant(2, 1, ends(store.KindRelease, one), func(r *store.Record) { r.Token-- })}, want: []int64{1}, head: 2},
		"an override with a claim below":        {records: []store.Record{one, two, grant(3, 6, ends(store.KindOverride, one), func(r *store.Record) { r.Claim = one.Claim })}, head: 3},
		"what contradicts, and was reset":       {records: []store.Record{one, grant(2, 1), grant(3, 5, ends(store.KindReset, one)), grant(4, 6)}, want: []int64{4, 1}, head: 4},
		"what contradicts, above the unread":    {records: []store.Record{one, unreadable(2), grant(3, 1)}, want: []int64{3, 1}, head: 3, unread: 2},
		"a far release":                         {records: []store.Record{one, grant(2, 1, ends(store.KindRelease, one), far)}, want: []int64{1}, head: 2},
		"a far override":                        {records: []store.Record{one, grant(2, 1, ends(store.KindOverride, one), far)}, want: []int64{1}, head: 2},
		"an override that a reset found far":    {records: []store.Record{one, grant(2, 5, ends(store.KindOverride, two)), grant(3, 5, ends(store.KindReset, one), func(r *store.Record) { r.ReadAt = noon.Add(-6 * time.Minute) })}, want: []int64{1}, head: 3},
		"what can't be read, below a far reset": {records: []store.Record{unreadable(1), grant(2, 5, ends(store.KindReset, two), far)}, head: 2, unread: 1},
		"a release of another":                  {records: []store.Record{one, grant(2, 1, ends(store.KindRelease, two))}, want: []int64{1}, head: 2},
		"overridden terms":                      {records: []store.Record{one, two, grant(3, 6, ends(store.KindOverride, grant(3, 6))), grant(4, 7)}, want: []int64{4}, head: 4},
		"an override with a window":             {records: []store.Record{one, grant(2, 1, func(r *store.Record) { r.Kind = store.KindOverride })}, want: []int64{1}, head: 2},
		"a window that is too long":             {records: []store.Record{one, grant(2, 5, long)}, want: []int64{1}, head: 2},
		"an extension":                          {records: []store.Record{one, grant(2, 5, of(one))}, want: []int64{2}, head: 2},
		"an extension after a gap":              {records: []store.Record{one, grant(2, 6, of(one))}, want: []int64{1}, head: 2},
		"a next slot under the same token":      {records: []store.Record{one, grant(2, 5, func(r *store.Record) { r.Token = one.Token })}, want: []int64{1}, head: 2},
		"what can't be read":                    {records: []store.Record{one, unreadable(2)}, want: []int64{1}, head: 2, unread: 2},
		"what can't be read, below a grant":     {records: []store.Record{unreadable(1), two}, want: []int64{2}, head: 2},
		"what can't be read, below a reset":     {records: []store.Record{unreadable(1), grant(2, 5, ends(store.KindReset, two))}, head: 2},
		"above a free key":                      {records: []store.Record{one, grant(3, 5)}, want: []int64{1}, head: 1},
		"above trimmed records":                 {records: []store.Record{grant(7, 0), grant(8, 5)}, want: []int64{8, 7}, head: 8},
		"the last possible key":                 {records: []store.Record{one, grant(store.MaxSeq, 5)}, want: []int64{1}, head: 1},
		"farther than workers come":             {records: []store.Record{grant(1<<41, 0)}},
		"unreadable, and nothing below":         {records: []store.Record{unreadable(9)}},
		"unreadable, and more below":            {records: []store.Record{unreadable(9)}, cut: true, head: 9, unread: 9},
	} {
		records := slices.Clone(c.records)
		slices.Reverse(records)
		s := ledger.Read(records, !c.cut, noon)
		var got []int64
		for _, r := range s.Terms {
			got = append(got, r.Seq)
		}
		if !slices.Equal(got, c.want) || s.Head.Seq != c.head || s.Unread.Seq != c.unread {
			t.Errorf("Read(%s) = terms %d, head %d, unread %d, want %d, %d, %d", what, got, s.Head.Seq, s.Unread.Seq, c.want, c.head, c.unread)
		}
	}
}

func TestATermIsInForceFromItsBeginningToTheEndOfItsNewestPart(t *testing.T) {
	first := grant(1, 0)
	newest := grant(2, 5, func(r *store.Record) { r.Claim, r.Token = first.Claim, first.Token })
	s := ledger.Read([]store.Record{newest, first}, true, noon)
	for after, want := range map[time.Duration]int{-time.Millisecond: 0, 0: 1, 5 * time.Minute: 1, 10*time.Minute - time.Millisecond: 1, 10 * time.Minute: 0} {
		for _, ahead := range []time.Duration{0, ledger.Ahead} {
			got := s.InForce(noon.Add(after-ahead), ahead)
			want := want
			if ahead > 0 && after >= 10*time.Minute && after < 10*time.Minute+ahead {
				want = 1
			}
			if len(got) != want || want == 1 && (got[0].Seq != 2 || got[0].Token != first.Token) {
				t.Errorf("InForce(noon + %v, %v) = %+v, want %d", after-ahead, ahead, got, want)
			}
		}
	}
}

func TestObeyableAsksForNoTime(t *testing.T) {
	far := grant(1, 0, func(r *store.Record) {
		r.WindowStart = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)
		r.WindowEnd = r.WindowStart.Add(time.Hour)
		r.Token = r.WindowStart.UnixMilli()
	})
	for what, c := range map[string]struct {
		r    store.Record
		want bool
	}{
		"a grant": {grant(1, 0), true}, "the far future": {far, true}, "none": {store.Record{}, false},
		"the last possible key": {grant(store.MaxSeq, 0), false}, "unreadable": {unreadable(1), false},
	} {
		if got := ledger.Obeyable(c.r); got != c.want {
			t.Errorf("Obeyable(%s) = %v, want %v", what, got, c.want)
		}
	}
}
