package storetest

import (
	"fmt"
	"testing"

	"github.com/slotlease/slotlease/store"
)

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
