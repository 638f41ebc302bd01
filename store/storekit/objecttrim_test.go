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

// Such a ledger has a retention that was too long, or a bucket whose trims failed for long. A list of all of it takes longer than
// an operation may.
func TestATrimOfALongLedgerListsLittle(t *testing.T) {
	t.Parallel()
	const last = 200_000
	l, s := shelved(t)
	for seq := int64(last); seq > 0; seq-- {
		if seq != 996 && seq > 990 {
			name := RecordName("job", seq)
			s.names, s.bodies[name] = append(s.names, name), []byte("{}")
		}
	}
	there := len(s.names)
	for range 2 {
		s.listed.Store(0)
		n, err := l.Trim(t.Context(), "job", last-100)
		if there -= n; n < store.TrimBatch-AtATime || err != nil || len(s.names) != there {
			t.Fatalf("Trim() = %d, %v, with %d records left, want hardly fewer than %d, and %d left", n, err, len(s.names), store.TrimBatch, there)
		}
		if listed := s.listed.Load(); listed > 2*listPage {
			t.Errorf("a trim listed %d names, want at most two pages of a thousand", listed)
		}
	}
	if oldest, want := s.names[there-1], RecordName("job", last+1-int64(there)); oldest != want {
		t.Errorf("the oldest record left is %s, want %s: no gap", oldest, want)
	}
}
