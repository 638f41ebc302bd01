package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// kindred are worker types that a careless query takes for one another:
// prefixes, case, and wildcards of LIKE and of regular expressions. Sorted.
var kindred = []string{"0", "A", "A-B", "a", "a-b", "a-b-c", "a.b", "a0", "a_b", "aa", "axb"}

var tailCases = []testCase{
	{"an empty ledger has an empty tail", func(t *testing.T, b *bench) {
		if got := tail(t, b, "job", 5); len(got) != 0 {
			t.Errorf("Tail(job, 5) of an empty ledger = %+v, want none and no error", got)
		}
		add(t, b, Grant("other", 1))
		if got := tail(t, b, "job", 5); len(got) != 0 {
			t.Errorf("Tail(job, 5) = %+v, want none: only another type has records", got)
		}
	}},
	{"the tail is newest first and as long as asked", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 12)
		wantSeqs(t, "Tail(job, 1)", tail(t, b, "job", 1), 12)
		wantSeqs(t, "Tail(job, 2)", tail(t, b, "job", 2), 12, 11)
		wantSeqs(t, "Tail(job, 11)", tail(t, b, "job", 11), 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)
		for _, r := range tail(t, b, "job", 12) {
			wantRecord(t, fmt.Sprintf("Tail(job, 12), Seq %d", r.Seq), r, Grant("job", r.Seq))
		}
	}},
	{"the order is that of Seq, not of arrival", func(t *testing.T, b *bench) {
		for _, seq := range []int64{10, 2, 100, 9, 1} {
			add(t, b, Grant("job", seq))
		}
		wantSeqs(t, "Tail(job, 9)", tail(t, b, "job", 9), 100, 10, 9, 2, 1)
		wantSeqs(t, "Tail(job, 1)", tail(t, b, "job", 1), 100)
	}},
	{"worker types with kindred names are kept apart", func(t *testing.T, b *bench) {
		for i, name := range kindred {
			addRange(t, b, name, 1, int64(i+1))
		}
		for i, name := range kindred {
			got := tail(t, b, name, 99)
			if len(got) != i+1 {
				t.Errorf("Tail(%q, 99) = %d records, want %d", name, len(got), i+1)
			}
			for _, r := range got {
				wantRecord(t, fmt.Sprintf("Tail(%q)", name), r, Grant(name, r.Seq))
			}
		}
		for i, name := range kindred {
			if i%2 == 0 {
				trim(t, b, name, store.MaxSeq)
			}
		}
		for i, name := range kindred {
			want := i + 1
			if i%2 == 0 {
				want = 1
			}
			if got := tail(t, b, name, 99); len(got) != want || got[0].Seq != int64(i+1) {
				t.Errorf("Tail(%q, 99) after trims of other types = %d records, want %d", name, len(got), want)
			}
		}
	}},
	{"worker types are listed in byte order and complete", func(t *testing.T, b *bench) {
		wantTypes(t, b)
		for _, name := range slices.Backward(kindred) {
			addRange(t, b, name, 1, 2)
		}
		wantTypes(t, b, kindred...)
		for _, name := range kindred {
			trim(t, b, name, store.MaxSeq)
		}
		wantTypes(t, b.handle(t), kindred...)
	}},
}

func wantTypes(t *testing.T, l store.Ledger, want ...string) {
	t.Helper()
	got, err := l.WorkerTypes(within(t))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("WorkerTypes() = %q, %v, want %q", got, err, want)
	}
}
