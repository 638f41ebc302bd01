package storetest

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// pageCases are for stores that are a store.Pager.
var pageCases = []testCase{
	{"a page of an empty ledger is empty", func(t *testing.T, b *bench) {
		wantPage(t, b, 0, 5)
		add(t, b, Grant("other", 1))
		wantPage(t, b, 0, 5)
	}},
	{"a page is oldest first, above a Seq, and as long as asked", func(t *testing.T, b *bench) {
		for _, seq := range []int64{3, 11, 1, 2, 10, 9} {
			add(t, b, Grant("job", seq))
		}
		wantPage(t, b, 0, 99, 1, 2, 3, 9, 10, 11)
		wantPage(t, b, 0, 2, 1, 2)
		wantPage(t, b, 2, 2, 3, 9)
		wantPage(t, b, 5, 1, 9)
		wantPage(t, b, 10, 9, 11)
		wantPage(t, b, 11, 9)
	}},
	{"a page above no key begins with the oldest record, and above the last has none", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 3)
		for _, after := range []int64{0, -1, math.MinInt64} {
			wantPage(t, b, after, 2, 1, 2)
		}
		for _, after := range []int64{3, store.MaxSeq - 1, store.MaxSeq, store.MaxSeq + 1, math.MaxInt64} {
			wantPage(t, b, after, 2)
		}
		for _, limit := range []int{0, -1, math.MinInt} {
			wantPage(t, b, 0, limit)
		}
		wantPage(t, b, 0, math.MaxInt, 1, 2, 3)
	}},
	{"a page has at most MaxPage records, and the next ones the rest", func(t *testing.T, b *bench) {
		const all = store.MaxPage + 5
		addMany(t, b.Ledger, all)
		first := page(t, b.Ledger, "job", 0, 2*store.MaxPage)
		if n := len(first); n != store.MaxPage {
			t.Errorf("Page(job, 0, %d) = %d records, want %d", 2*store.MaxPage, n, store.MaxPage)
		}
		rest := page(t, b.Ledger, "job", store.MaxPage, 2*store.MaxPage)
		for i, r := range slices.Concat(first, rest) {
			wantRecord(t, fmt.Sprintf("record %d of two pages", i+1), r, Grant("job", int64(i+1)))
		}
		if n := len(first) + len(rest); n != all {
			t.Errorf("two pages have %d records, want %d", n, all)
		}
	}},
	{"pages of worker types with kindred names are kept apart", func(t *testing.T, b *bench) {
		for i, name := range kindred {
			addRange(t, b, name, 1, int64(i+1))
		}
		for i, name := range kindred {
			got := page(t, b.Ledger, name, 0, 99)
			if len(got) != i+1 {
				t.Errorf("Page(%q, 0, 99) = %d records, want %d", name, len(got), i+1)
			}
			for _, r := range got {
				wantRecord(t, fmt.Sprintf("Page(%q)", name), r, Grant(name, r.Seq))
			}
		}
	}},
	{"a page begins above what was trimmed", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 9)
		wantTrim(t, b, "job", 6, 5)
		wantPage(t, b, 0, 2, 6, 7)
		wantPage(t, b, 3, 99, 6, 7, 8, 9)
	}},
	{"documents that can't be decoded are in a page, each with a Defect", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 2)
		for i, name := range required {
			seq := int64(3 + i)
			f := Fields(Grant("job", seq))
			delete(f, name)
			b.Plant(t, "job", seq, f)
		}
		newest := int64(3 + len(required))
		add(t, b, Grant("job", newest))
		got := page(t, b.Ledger, "job", 0, 99)
		if int64(len(got)) != newest {
			t.Fatalf("Page(job, 0, 99) = %d records, want %d: none may be hidden", len(got), newest)
		}
		for i, r := range got {
			if defective := i >= 2 && i < len(got)-1; r.Seq != int64(i+1) || r.WorkerType != "job" || (r.Defect != "") != defective {
				t.Errorf("record %d of a page = %+v, want a Defect: %v", i+1, r, defective)
			}
			if one := get(t, b, "job", r.Seq); one != r {
				t.Errorf("record %d of a page = %+v, and Get() = %+v", i+1, r, one)
			}
		}
	}},
	{"keys that can't be followed are passed over, and take no place in a page", func(t *testing.T, b *bench) {
		for _, seq := range []int64{math.MinInt64 + 1, -1, 0, store.MaxSeq + 1, 1 << 60, math.MaxInt64} {
			b.Plant(t, "job", seq, Fields(Grant("job", seq)))
		}
		wantPage(t, b, math.MinInt64, 2)
		addRange(t, b, "job", 1, 3)
		wantPage(t, b, math.MinInt64, 2, 1, 2)
		wantPage(t, b, 2, 9, 3)
		wantPage(t, b, 3, 9)
	}},
	{"the last key is in a page", func(t *testing.T, b *bench) {
		add(t, b, Grant("job", 1), Grant("job", store.MaxSeq))
		wantPage(t, b, 1, 9, store.MaxSeq)
		wantPage(t, b, store.MaxSeq-1, 9, store.MaxSeq)
	}},
	{"pages lack nothing that was acknowledged while appends go on", pageWhileAppending},
}

// pageWhileAppending reads pages by one handle while another appends.
func pageWhileAppending(t *testing.T, b *bench) {
	p, writer := asPager(t, b.Ledger), b.handle(t)
	const all = 120
	var acknowledged atomic.Int64
	failed := make(chan error, 1)
	go func() {
		for seq := int64(1); seq <= all; seq++ {
			if err := writer.Append(t.Context(), Grant("job", seq)); err != nil {
				failed <- err
				return
			}
			acknowledged.Store(seq)
		}
		failed <- nil
	}()
	for after, last := int64(0), false; !last; {
		last = len(failed) > 0
		least := acknowledged.Load()
		for {
			got, err := p.Page(within(t), "job", after, 7)
			if err != nil {
				t.Fatalf("Page(job, %d, 7) = %v, want nil", after, err)
			}
			for _, r := range got {
				if after++; r.Seq != after {
					t.Fatalf("a page has Seq %d where %d comes next", r.Seq, after)
				}
			}
			if len(got) == 0 {
				break
			}
		}
		if after < least {
			t.Fatalf("the pages end at Seq %d, and %d was acknowledged before", after, least)
		}
	}
	if err := <-failed; err != nil {
		t.Errorf("Append() beside Page() = %v, want nil", err)
	}
}

// addMany appends the grants 1 … n of the type "job", some at a time.
func addMany(t *testing.T, l store.Ledger, n int64) {
	t.Helper()
	if err := appendMany(lasting(t, 10*patience), l, "job", 1, n, 8); err != nil {
		t.Error(err)
	}
}

// asPager is a ledger as one that has pages. The case is skipped if it has none.
func asPager(t *testing.T, l store.Ledger) store.Pager {
	t.Helper()
	p, ok := store.As[store.Pager](l)
	if !ok {
		t.Skip("the store is no store.Pager")
	}
	return p
}

// page is a page that must be readable.
func page(t *testing.T, l store.Ledger, workerType string, after int64, limit int) []store.Record {
	t.Helper()
	got, err := asPager(t, l).Page(within(t), workerType, after, limit)
	if err != nil {
		t.Fatalf("Page(%q, %d, %d) = %v, want nil", workerType, after, limit, err)
	}
	return got
}

// wantPage demands the grants of a page of the type "job".
func wantPage(t *testing.T, b *bench, after int64, limit int, want ...int64) {
	t.Helper()
	got := page(t, b.Ledger, "job", after, limit)
	wantSeqs(t, fmt.Sprintf("Page(job, %d, %d)", after, limit), got, want...)
	for _, r := range got {
		wantRecord(t, fmt.Sprintf("Page(job), Seq %d", r.Seq), r, Grant("job", r.Seq))
	}
}
