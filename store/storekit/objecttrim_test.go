package storekit

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
)

// failing lets deletions of a record fail, until that is undone.
func failing(s *shelf, seq int64) (undo func()) {
	s.fails = func(name string) error {
		if name == RecordName("job", seq) {
			time.Sleep(time.Second) // in a bubble, until all others are done
			return errors.New("locked")
		}
		return nil
	}
	return func() { s.fails = nil }
}

// upTo are the Seqs 1 … n.
func upTo(n int64) (seqs []int64) {
	for seq := int64(1); seq <= n; seq++ {
		seqs = append(seqs, seq)
	}
	return seqs
}

func TestATrimThatCannotDeleteTheOldestDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := shelved(t, upTo(50)...)
		failing(s, 1)
		for range 3 {
			if n, err := l.Trim(t.Context(), "job", 40); n != 0 || err == nil {
				t.Errorf("Trim(job, 40) = %d, %v, want 0 and an error", n, err)
			}
		}
		if left := len(s.names); left != 50 {
			t.Errorf("%d records are left, want 50: a gap above the oldest grows with each try", left)
		}
	})
}

func TestATrimAfterOneThatFailedDeletesWhatThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stuck, before = 20, 40
		l, s := shelved(t, upTo(50)...)
		undo := failing(s, stuck)
		n, err := l.Trim(t.Context(), "job", before)
		if err == nil || n < stuck-1 || n >= stuck-1+AtATime {
			t.Fatalf("Trim(job, %d) = %d, %v, want an error, %d deleted and fewer than %d above", before, n, err, stuck-1, AtATime)
		}
		if again, err := l.Trim(t.Context(), "job", before); again != 0 || err == nil {
			t.Errorf("Trim(job, %d) = %d, %v, want 0 and an error: the oldest can't be deleted", before, again, err)
		}
		undo()
		if again, err := l.Trim(t.Context(), "job", before); again != before-1-n || err != nil {
			t.Errorf("Trim(job, %d) = %d, %v, want the other %d", before, again, err, before-1-n)
		}
		if _, err := l.Get(t.Context(), "job", stuck); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Get(job, %d) = %v, want ErrNotFound", stuck, err)
		}
	})
}
