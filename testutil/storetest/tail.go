package storetest

import (
	"errors"
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

var trimCases = []testCase{
	{"a trim deletes what is older than before and says how many", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 10)
		wantTrim(t, b, "job", 4, 3)
		other := b.handle(t)
		absent(t, other, "job", 3)
		wantRecord(t, "Get(job, 4)", get(t, other, "job", 4), Grant("job", 4))
		wantSeqs(t, "Tail(job)", tail(t, other, "job", 99), 10, 9, 8, 7, 6, 5, 4)
		wantTrim(t, b, "job", 4, 0)
	}},
	{"a trim never takes the head", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 5)
		wantTrim(t, b, "job", store.MaxSeq, 4)
		for _, before := range []int64{5, 6, 1 << 40, store.MaxSeq, store.MaxSeq + 1} {
			wantTrim(t, b, "job", before, 0)
			wantRecord(t, "Get(job, 5)", get(t, b, "job", 5), Grant("job", 5))
		}
		wantSeqs(t, "Tail(job)", tail(t, b, "job", 9), 5)
	}},
	{"a trim never takes a head at MaxSeq", func(t *testing.T, b *bench) {
		add(t, b, Grant("job", 1), Grant("job", store.MaxSeq))
		wantTrim(t, b, "job", store.MaxSeq+1, 1)
		wantSeqs(t, "Tail(job)", tail(t, b, "job", 9), store.MaxSeq)
	}},
	{"a trim of nothing is 0", func(t *testing.T, b *bench) {
		wantTrim(t, b, "job", 100, 0)
		wantTypes(t, b)
		addRange(t, b, "job", 3, 4)
		for _, before := range []int64{-1, 0, 1, 3} {
			wantTrim(t, b, "job", before, 0)
		}
		wantSeqs(t, "Tail(job)", tail(t, b, "job", 9), 4, 3)
	}},
	{"a trim keeps to its worker type", func(t *testing.T, b *bench) {
		addRange(t, b, "a", 1, 3)
		addRange(t, b, "a-b", 1, 3)
		addRange(t, b, "A", 1, 3)
		wantTrim(t, b, "a", 3, 2)
		wantSeqs(t, "Tail(a-b)", tail(t, b, "a-b", 9), 3, 2, 1)
		wantSeqs(t, "Tail(A)", tail(t, b, "A", 9), 3, 2, 1)
	}},
	{"the tail is newest first after trims and appends in turn", func(t *testing.T, b *bench) {
		for round := int64(0); round < 4; round++ {
			addRange(t, b, "job", 5*round+1, 5*round+5)
			trim(t, b, "job", 5*round+4)
			wantSeqs(t, fmt.Sprintf("Tail(job) in round %d", round), tail(t, b, "job", 99), 5*round+5, 5*round+4)
		}
	}},
	{"the key of a trimmed record opens again below the head", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 5)
		trim(t, b, "job", 4)
		again := claimed("job", 2, "late")
		add(t, b, again)
		wantRecord(t, "Get(job, 2)", get(t, b, "job", 2), again)
		wantSeqs(t, "Tail(job, 1)", tail(t, b, "job", 1), 5)
		wantSeqs(t, "Tail(job)", tail(t, b, "job", 9), 5, 4, 2)
	}},
	{"one trim deletes at most TrimBatch, the oldest first, and repeated ones finish", func(t *testing.T, b *bench) {
		const size = store.TrimBatch + 20
		addRange(t, b, "job", 1, size)
		wantTrim(t, b, "job", size-4, store.TrimBatch)
		absent(t, b, "job", store.TrimBatch)
		wantRecord(t, "the oldest that is left", get(t, b, "job", store.TrimBatch+1), Grant("job", store.TrimBatch+1))
		wantTrim(t, b, "job", size-4, 15)
		wantTrim(t, b, "job", size-4, 0)
		wantSeqs(t, "Tail(job)", tail(t, b, "job", 99), size, size-1, size-2, size-3, size-4)
	}},
}

// readerCases are about handles without the right to write.
var readerCases = []testCase{
	{"a reader reads all that others read", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 5)
		add(t, b, Grant("mail", 1))
		bad := Fields(Grant("job", 6))
		delete(bad, "claim")
		b.Plant(t, "job", 6, bad)
		r := b.reader(t)
		got, want := tail(t, r, "job", 4), tail(t, b, "job", 4)
		if !slices.Equal(got, want) {
			t.Errorf("Tail(job, 4) by a reader = %+v, want %+v", got, want)
		}
		wantRecord(t, "Get by a reader", get(t, r, "job", 2), Grant("job", 2))
		absent(t, r, "job", 9)
		if types, err := r.WorkerTypes(within(t)); err != nil || !slices.Equal(types, []string{"job", "mail"}) {
			t.Errorf("WorkerTypes() by a reader = %q, %v, want job and mail", types, err)
		}
		before := now(t, b)
		s := now(t, r)
		wantStamp(t, "Now() by a reader", s)
		if after := now(t, b); s.Time.Before(before.Time.Add(-before.Granularity-s.MaxAge-s.Skew)) || s.Time.After(after.Time.Add(after.Granularity+s.MaxAge+s.Skew)) {
			t.Errorf("Now() by a reader = %+v, want it in %v … %v", s, before.Time, after.Time)
		}
	}},
	{"a reader sees what is appended and trimmed while it is open", func(t *testing.T, b *bench) {
		add(t, b, Grant("job", 1))
		r := b.reader(t)
		for seq := int64(2); seq <= 9; seq++ {
			wantSeqs(t, "Tail by a reader", tail(t, r, "job", 1), seq-1)
			add(t, b, Grant("job", seq))
		}
		wantTrim(t, b, "job", 9, 8)
		wantSeqs(t, "Tail by a reader after a trim", tail(t, r, "job", 9), 9)
	}},
	{"a reader is denied to append, to trim and to create, and changes nothing", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 3)
		r := b.reader(t)
		for _, seq := range []int64{2, 4} {
			if err := r.Append(within(t), claimed("job", seq, "reader")); !errors.Is(err, store.ErrDenied) && !(seq == 2 && errors.Is(err, store.ErrConflict)) {
				t.Errorf("Append(job, %d) by a reader = %v, want ErrDenied", seq, err)
			}
		}
		if n, err := r.Trim(within(t), "job", store.MaxSeq); n != 0 || !errors.Is(err, store.ErrDenied) {
			t.Errorf("Trim() by a reader = %d, %v, want 0 and ErrDenied", n, err)
		}
		if check := store.Describe(r).CheckRights; check != nil {
			if err := check(within(t)); err != nil && !errors.Is(err, store.ErrDenied) {
				t.Errorf("CheckRights() by a reader = %v, want nil or ErrDenied", err)
			}
		}
		// Nothing is missing, so there may be nothing that it is denied.
		if err := r.Init(within(t)); err != nil && !errors.Is(err, store.ErrDenied) {
			t.Errorf("Init() by a reader = %v, want nil or ErrDenied", err)
		}
		for name, l := range map[string]store.Ledger{"a reader": r, "another": b} {
			got := tail(t, l, "job", 9)
			wantSeqs(t, "Tail afterwards by "+name, got, 3, 2, 1)
			for _, g := range got {
				wantRecord(t, "a record afterwards by "+name, g, Grant("job", g.Seq))
			}
		}
		add(t, b, Grant("job", 4))
	}},
}

// reader returns a handle without the right to write.
func (b *bench) reader(t *testing.T) store.Ledger {
	t.Helper()
	if b.OpenReading == nil {
		t.Skip("the harness has no OpenReading: its store knows no handles without the right to write")
	}
	l := b.OpenReading(t)
	t.Cleanup(func() { _ = l.Close(t.Context()) })
	return l
}
