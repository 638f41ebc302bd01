package storekit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

// shelf is an Objects in memory.
type shelf struct {
	mu     sync.Mutex
	bodies map[string][]byte
	names  []string // sorted
	clock  clock.Clock
	lists  int // made so far
	reads  int
	// during is called while the list with a number is made. Of what it stores, the list has the first name only.
	during func(list int)
	// before is called before the list with a number is made.
	before func(list int)
	// takes is how long a read takes, and listed how many names were listed.
	takes  time.Duration
	listed atomic.Int64
	// fails is the error of a deletion.
	fails func(name string) error
}

func newShelf() *shelf { return &shelf{bodies: map[string][]byte{}, clock: clock.New()} }

func (s *shelf) stamp(ctx context.Context) store.Stamp {
	at := store.Stamp{Time: s.clock.Now().UTC().Round(0).Truncate(time.Millisecond), Granularity: time.Millisecond, Server: "shelf"}
	Note(ctx, at)
	return at
}

func (s *shelf) Create(ctx context.Context, name string, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.bodies[name]; there {
		return store.ErrConflict
	}
	s.put(name, body)
	s.stamp(ctx)
	return ctx.Err()
}

func (s *shelf) put(name string, body []byte) {
	if i, there := slices.BinarySearch(s.names, name); !there {
		s.names = slices.Insert(s.names, i, name)
	}
	s.bodies[name] = body
}

func (s *shelf) Replace(ctx context.Context, name string, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(name, body)
	s.stamp(ctx)
	return nil
}

func (s *shelf) Read(ctx context.Context, name string) ([]byte, error) {
	if s.takes > 0 {
		time.Sleep(s.takes) // in a bubble
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	s.stamp(ctx)
	body, there := s.bodies[name]
	if !there {
		return nil, store.ErrNotFound
	}
	return body, nil
}

func (s *shelf) List(ctx context.Context, prefix, after string, hint int, visit func(o Object) bool) error {
	matching := func() []string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.DeleteFunc(slices.Clone(s.names), func(name string) bool {
			return !strings.HasPrefix(name, prefix) || name <= after
		})
	}
	if s.before != nil || s.during != nil {
		s.lists++
	}
	if s.before != nil {
		s.before(s.lists)
	}
	names := matching()
	s.stamp(ctx)
	if s.during != nil {
		s.during(s.lists)
		if now := matching(); len(now) > 0 && !slices.Contains(names, now[0]) {
			names = slices.Insert(names, 0, now[0])
		}
	}
	for _, name := range names {
		s.listed.Add(1)
		s.mu.Lock()
		size := int64(len(s.bodies[name]))
		s.mu.Unlock()
		if !visit(Object{Name: name, Size: size}) {
			break
		}
	}
	return nil
}

func (s *shelf) Delete(_ context.Context, name string) (bool, error) {
	if s.fails != nil {
		if err := s.fails(name); err != nil {
			return false, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, there := slices.BinarySearch(s.names, name)
	if there {
		s.names = slices.Delete(s.names, i, i+1)
		delete(s.bodies, name)
	}
	return there, nil
}

func (s *shelf) Now(ctx context.Context) (store.Stamp, error) { return s.stamp(ctx), nil }

func (s *shelf) Close() error { return nil }

func TestNamesOfRecordsAreInTheOrderOfTheNewest(t *testing.T) {
	t.Parallel()
	last := ""
	for _, seq := range []int64{store.MaxSeq, store.MaxSeq - 1, 1 << 40, 1000, 999, 2, 1} {
		name := RecordName("job", seq)
		if name <= last {
			t.Errorf("RecordName(%d) = %s, want it after %s", seq, name, last)
		}
		last = name
		got, ok := seqOf(strings.TrimPrefix(name, "ledger/job/"))
		if !ok || got != seq {
			t.Errorf("seqOf(%s) = %d, %v, want %d", name, got, ok, seq)
		}
	}
	for _, name := range []string{"", "0000000000000000", "9007199254740991", "9007199254740992", "+007199254740990", "900719925474099", "00900719925474099", "900719925474099x", "0x0", fmt.Sprintf("0x%d", int64(store.MaxSeq+1))} {
		if seq, ok := seqOf(name); ok {
			t.Errorf("seqOf(%q) = %d, want that it is none", name, seq)
		}
	}
}

func TestAListAsksForFewLargeContentsAtATime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ objects, bytes, most, want int }{
		{0, 0, 200, 16}, {0, 0, 2, 2}, {16, 16 << 10, 200, 64}, {64, 64 << 10, 200, 200}, {16, 24 << 20, 200, 10}, {1, 64 << 20, 200, 1}, {16, 0, 200, 64},
	} {
		if got := Piece(c.objects, c.bytes, c.most); got != c.want {
			t.Errorf("Piece(%d, %d, %d) = %d, want %d", c.objects, c.bytes, c.most, got, c.want)
		}
	}
}
