package storekit

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// moving is a shelf that changes while it is listed.
type moving struct {
	*shelf
	lists   int
	listing func(n int) error // before list n
	passed  func(n int)       // right behind the place of list n's newest key
	listed  func(n int)       // after list n, before what it shows is read
}

func (m *moving) List(ctx context.Context, prefix, after string, hint int, visit func(o Object) bool) error {
	m.lists++
	if m.listing != nil {
		if err := m.listing(m.lists); err != nil {
			return err
		}
	}
	newest := ""
	if m.passed != nil {
		if err := m.shelf.List(ctx, prefix, after, 1, func(o Object) bool { newest = o.Name; return false }); err != nil {
			return err
		}
		m.passed(m.lists)
	}
	err := m.shelf.List(ctx, prefix, after, hint, func(o Object) bool {
		return o.Name < newest || visit(o) // What sorts before was put behind the back of the list.
	})
	m.listed(m.lists)
	return err
}

func trimmed(t *testing.T, s *shelf, seq int64) {
	t.Helper()
	if _, err := s.Delete(t.Context(), RecordName("job", seq)); err != nil {
		t.Fatal(err)
	}
}

// One list shows a record that is gone when it is read, the next one nothing: that is one empty list, not two.
func TestATailIsNotEmptyAfterAListThatShowedARecord(t *testing.T) {
	l, s := shelved(t, 5)
	m := &moving{shelf: s}
	m.listed = func(n int) {
		if n == 1 {
			appended(t, l, 6)
			trimmed(t, s, 5)
		}
	}
	m.passed = func(n int) {
		if n == 2 {
			appended(t, l, 7)
			trimmed(t, s, 6)
		}
	}
	l.o.Objects = m
	if got, _, err := l.Tail(t.Context(), "job", 1); err != nil || !slices.Equal(seqsOf(got), []int64{7}) {
		t.Errorf("Tail() = %v, %v after %d lists, want record 7", seqsOf(got), err, m.lists)
	}
}

// A tail that reaches down to the oldest records needs no list more for each that a trim deletes meanwhile.
func TestATailLacksTheOldestThatATrimDeletes(t *testing.T) {
	l, s := shelved(t, upTo(40)...)
	m := &moving{shelf: s, listed: func(n int) { trimmed(t, s, int64(n)) }}
	l.o.Objects = m
	got, _, err := l.Tail(t.Context(), "job", 100)
	want := upTo(40)[1:]
	slices.Sort(want)
	slices.Reverse(want)
	if err != nil || !slices.Equal(seqsOf(got), want) || m.lists != 1 {
		t.Errorf("Tail() = %v, %v after %d lists, want all but the oldest after one", seqsOf(got), err, m.lists)
	}
}

// What was read before an error is no tail.
func TestATailThatFailsHasNoRecords(t *testing.T) {
	l, s := shelved(t, 1, 2)
	m := &moving{shelf: s}
	m.listed = func(n int) {
		if n == 1 {
			appended(t, l, 3)
			trimmed(t, s, 2)
		}
	}
	m.listing = func(n int) error {
		if n == 2 {
			return errors.New("no list")
		}
		return nil
	}
	l.o.Objects = m
	if got, _, err := l.Tail(t.Context(), "job", 2); err == nil || len(got) > 0 {
		t.Errorf("Tail() = %v, %v, want the error alone", seqsOf(got), err)
	}
}
