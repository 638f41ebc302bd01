package storetest

import (
	"fmt"
	"testing"

	"github.com/slotlease/slotlease/store"
)

var trimCases = []testCase{
	{"a trim deletes what is older than before and says how many", func(t *testing.T, b *bench) {
		l := b.ledger(t)
		addRange(t, l, "job", 1, 10)
		if got := trim(t, l, "job", 4); got != 3 {
			t.Errorf("Trim(job, 4) = %d, want 3", got)
		}
		other := b.ledger(t)
		absent(t, other, "job", 3)
		wantRecord(t, "Get(job, 4)", get(t, other, "job", 4), Grant("job", 4))
		wantSeqs(t, "Tail(job)", tail(t, other, "job", 99), 10, 9, 8, 7, 6, 5, 4)
		if got := trim(t, l, "job", 4); got != 0 {
			t.Errorf("Trim(job, 4), repeated = %d, want 0", got)
		}
	}},
	{"a trim never takes the head", func(t *testing.T, b *bench) {
		l := b.ledger(t)
		addRange(t, l, "job", 1, 5)
		if got := trim(t, l, "job", store.MaxSeq); got != 4 {
			t.Errorf("Trim(job, MaxSeq) of 5 records = %d, want 4", got)
		}
		for _, before := range []int64{5, 6, 1 << 40, store.MaxSeq, store.MaxSeq + 1} {
			if got := trim(t, l, "job", before); got != 0 {
				t.Errorf("Trim(job, %d) of the head alone = %d, want 0", before, got)
			}
			wantRecord(t, "Get(job, 5)", get(t, l, "job", 5), Grant("job", 5))
		}
		wantSeqs(t, "Tail(job)", tail(t, l, "job", 9), 5)
	}},
	{"a trim never takes a head at MaxSeq", func(t *testing.T, b *bench) {
		l := b.ledger(t)
		add(t, l, Grant("job", 1), Grant("job", store.MaxSeq))
		if got := trim(t, l, "job", store.MaxSeq+1); got != 1 {
			t.Errorf("Trim(job, MaxSeq+1) = %d, want 1", got)
		}
		wantSeqs(t, "Tail(job)", tail(t, l, "job", 9), store.MaxSeq)
	}},
	{"a trim of nothing is 0", func(t *testing.T, b *bench) {
		l := b.ledger(t)
		if got := trim(t, l, "job", 100); got != 0 {
			t.Errorf("Trim of an unknown type = %d, want 0", got)
		}
		wantTypes(t, l)
		addRange(t, l, "job", 3, 4)
		for _, before := range []int64{-1, 0, 1, 3} {
			if got := trim(t, l, "job", before); got != 0 {
				t.Errorf("Trim(job, %d) below the oldest = %d, want 0", before, got)
			}
		}
		wantSeqs(t, "Tail(job)", tail(t, l, "job", 9), 4, 3)
	}},
	{"a trim keeps to its worker type", func(t *testing.T, b *bench) {
		l := b.ledger(t)
		addRange(t, l, "a", 1, 3)
		addRange(t, l, "a-b", 1, 3)
		addRange(t, l, "A", 1, 3)
		if got := trim(t, l, "a", 3); got != 2 {
			t.Errorf("Trim(a, 3) = %d, want 2", got)
		}
		wantSeqs(t, "Tail(a-b)", tail(t, l, "a-b", 9), 3, 2, 1)
		wantSeqs(t, "Tail(A)", tail(t, l, "A", 9), 3, 2, 1)
	}},
	{"the tail is newest first after trims and appends in turn", func(t *testing.T, b *bench) {
		l := b.ledger(t)
		for round := int64(0); round < 4; round++ {
			addRange(t, l, "job", 5*round+1, 5*round+5)
			trim(t, l, "job", 5*round+4)
			wantSeqs(t, fmt.Sprintf("Tail(job) in round %d", round), tail(t, l, "job", 99), 5*round+5, 5*round+4)
		}
	}},
	{"the key of a trimmed record opens again below the head", func(t *testing.T, b *bench) {
		l := b.ledger(t)
		addRange(t, l, "job", 1, 5)
		trim(t, l, "job", 4)
		again := claimed("job", 2, "late")
		add(t, l, again)
		wantRecord(t, "Get(job, 2)", get(t, l, "job", 2), again)
		wantSeqs(t, "Tail(job, 1)", tail(t, l, "job", 1), 5)
		wantSeqs(t, "Tail(job)", tail(t, l, "job", 9), 5, 4, 2)
	}},
	{"one trim deletes at most TrimBatch, the oldest first, and repeated ones finish", func(t *testing.T, b *bench) {
		l := b.ledger(t)
		const size = store.TrimBatch + 20
		addRange(t, l, "job", 1, size)
		if got := trim(t, l, "job", size-4); got != store.TrimBatch {
			t.Errorf("Trim(job, %d) of %d records = %d, want TrimBatch (%d)", size-4, size, got, store.TrimBatch)
		}
		absent(t, l, "job", store.TrimBatch)
		wantRecord(t, "the oldest that is left", get(t, l, "job", store.TrimBatch+1), Grant("job", store.TrimBatch+1))
		if got := trim(t, l, "job", size-4); got != 15 {
			t.Errorf("second Trim = %d, want 15", got)
		}
		if got := trim(t, l, "job", size-4); got != 0 {
			t.Errorf("third Trim = %d, want 0", got)
		}
		wantSeqs(t, "Tail(job)", tail(t, l, "job", 99), size, size-1, size-2, size-3, size-4)
	}},
}
