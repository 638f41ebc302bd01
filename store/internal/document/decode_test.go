package document

import (
	"testing"

	"github.com/slotlease/slotlease/store"
)

func TestSeqOf(t *testing.T) {
	for _, c := range []struct {
		workerType, id string
		want           int64
	}{
		{"job", "job:00000000000000000001", 1},
		{"job", "job:00009007199254740990", store.MaxSeq},
		{"job", "job:00009007199254740991", 0},
		{"job", "job:09223372036854775807", 0},
		{"job", "job:99999999999999999999", 0},
		{"job", "job:00000000000000000000", 0},
		{"job", "job:-0000000000000000001", 0},
		{"job", "job:+0000000000000000001", 0},
		{"job", "job:0000000000000000001", 0},
		{"job", "job:000000000000000000001", 0},
		{"job", "job:0000000000000000000_1", 0},
		{"job", "job:0000000000000000000١", 0},
		{"job", "job:", 0},
		{"job", "job2:00000000000000000001", 0},
		{"j", "job:00000000000000000001", 0},
		{"", "", 0},
	} {
		got, ok := SeqOf(c.workerType, c.id)
		if got != c.want || ok != (c.want > 0) {
			t.Errorf("SeqOf(%q, %q) = %d, %v, want %d", c.workerType, c.id, got, ok, c.want)
		}
	}
}

func FuzzSeqOf(f *testing.F) {
	for _, id := range []string{"", "job:", "job:00000000000000000001", "job:00009007199254740990", "job:00009007199254740991", "job:-0000000000000000001", "job:99999999999999999999", "a:b:00000000000000000007"} {
		f.Add("job", id, int64(7))
	}
	f.Add("a:b", "a:b:00000000000000000007", int64(store.MaxSeq))
	f.Fuzz(func(t *testing.T, workerType, id string, n int64) {
		if seq, ok := SeqOf(workerType, id); ok && (seq < 1 || seq > store.MaxSeq || store.Key(workerType, seq) != id) || !ok && seq != 0 {
			t.Errorf("SeqOf(%q, %q) = %d, %v, want the Seq whose key that is", workerType, id, seq, ok)
		}
		seq, ok := SeqOf(workerType, store.Key(workerType, n))
		if followed := n >= 1 && n <= store.MaxSeq; ok != followed || ok && seq != n {
			t.Errorf("SeqOf(Key(%q, %d)) = %d, %v, want it found: %v", workerType, n, seq, ok, followed)
		}
	})
}
