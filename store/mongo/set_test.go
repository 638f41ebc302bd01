package mongo

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// onASet plays a test with a set in a bubble, where a command takes 2 ms, and with two ledgers
// on it, each with its own client.
func onASet(t *testing.T, play func(t *testing.T, s *fakeReplicaSet, a, b *Ledger)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := serveReplicaSet(t, inBubble)
		for _, m := range s.members {
			m.slow.Store(int64(2 * time.Millisecond))
		}
		var both [2]*Ledger
		for i := range both {
			client, _ := s.connect(t)
			both[i] = open(t, Options{Client: client})
			must(t, "Init()", both[i].Init(within(t, patience)))
		}
		// From here on, the clients know the set and the round trips.
		time.Sleep(20 * time.Second)
		play(t, s, both[0], both[1])
	})
}

// seqs are those that a ledger shows.
func seqs(t *testing.T, l *Ledger) (all []int64) {
	t.Helper()
	records, _, err := l.Tail(within(t, patience), "job", 100)
	must(t, "Tail()", err)
	for _, r := range records {
		all = append(all, r.Seq)
	}
	return all
}

// A key that is taken by a record which no majority has isn't taken for good: the record may be
// rolled back. The conflict says that this append stored nothing, and reads don't show the record.
func TestAConflictWithARecordThatIsRolledBack(t *testing.T) {
	t.Parallel()
	onASet(t, func(t *testing.T, s *fakeReplicaSet, a, b *Ledger) {
		must(t, "Append()", a.Append(within(t, time.Second), storetest.Grant("job", 1)))
		old := s.primary()
		s.split(old)
		wantSentinel(t, "Append() on the primary that is cut off", a.Append(within(t, time.Second), storetest.Grant("job", 2)), nil)
		wantSentinel(t, "Append() at the same key", b.Append(within(t, time.Second), storetest.Grant("job", 2)), store.ErrConflict)
		for _, l := range []*Ledger{a, b} {
			_, err := l.Get(within(t, time.Second), "job", 2)
			wantErr(t, "Get() of the record that a minority has", err, store.ErrNotFound)
			if got := seqs(t, l); !slices.Equal(got, []int64{1}) {
				t.Errorf("Tail() = %d, want what a majority has: 1", got)
			}
		}
		s.elect(s.other(old))
		time.Sleep(time.Second)
		must(t, "Append() at the new primary", b.Append(within(t, time.Second), storetest.Grant("job", 2)))
		s.heal(old)
		time.Sleep(time.Second)
		if got, err := a.Get(within(t, time.Second), "job", 2); err != nil || got != storetest.Grant("job", 2) {
			t.Errorf("Get() after the rollback = %+v, %v, want the record of the new primary", got, err)
		}
		wantSentinel(t, "Append() at the key again", a.Append(within(t, time.Second), storetest.Grant("job", 2)), store.ErrConflict)
		if s.rolledBack != 1 || s.played("50") == 0 || s.played("11000+50") == 0 {
			t.Errorf("%d records rolled back after replies %v, want one, and both 50 and 11000 with 50", s.rolledBack, s.answered)
		}
	})
}

// The outcome of an append that was interrupted is unknown: the record stays if a majority has it in the end.
func TestAnAppendThroughAStepDown(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"the record stays": false, "the record is rolled back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onASet(t, func(t *testing.T, s *fakeReplicaSet, a, b *Ledger) {
				old := s.primary()
				s.split(old)
				replied := make(chan error, 1)
				go func() {
					ctx, cancel := context.WithTimeout(context.Background(), patience)
					defer cancel()
					replied <- a.Append(ctx, storetest.Grant("job", 1))
				}()
				time.Sleep(time.Second)
				if lost {
					s.elect(s.other(old))
					s.heal(old)
				} else {
					s.stepDown(old)
					s.heal(old)
					s.elect(old)
				}
				wantSentinel(t, "Append()", <-replied, nil)
				time.Sleep(time.Second)
				if again := b.Append(within(t, time.Second), storetest.Grant("job", 1)); lost {
					must(t, "Append() again", again)
				} else {
					wantSentinel(t, "Append() again", again, store.ErrConflict)
				}
				if s.played("11602") != 1 || (s.rolledBack == 1) != lost {
					t.Errorf("%d records rolled back after replies %v, want the append to be interrupted", s.rolledBack, s.answered)
				}
			})
		})
	}
}

// Without a primary, operations end with their context at the latest; with a new one, they work at once.
func TestAnElection(t *testing.T) {
	t.Parallel()
	onASet(t, func(t *testing.T, s *fakeReplicaSet, a, b *Ledger) {
		must(t, "Append()", a.Append(within(t, time.Second), storetest.Grant("job", 1)))
		for i, end := range []func(*fakeMember){s.stepDown, s.kill} {
			old, seq := s.primary(), int64(i+2)
			end(old)
			for name, l := range map[string]*Ledger{"a": a, "b": b} {
				began := time.Now()
				err := l.Append(within(t, time.Second), storetest.Grant("job", seq))
				wantSentinel(t, name+": Append() without a primary", err, nil)
				if took := time.Since(began); took > 1100*time.Millisecond {
					t.Errorf("%s: Append() without a primary = %v after %v, want an end with its context", name, err, took)
				}
			}
			s.elect(s.other(old))
			began := time.Now()
			must(t, "Append() with a new primary", a.Append(within(t, 10*time.Second), storetest.Grant("job", seq)))
			if took := time.Since(began); took > time.Second {
				t.Errorf("Append() with a new primary took %v, want it to be found at once", took)
			}
			if old.down {
				s.start(old)
			}
		}
		if got := seqs(t, b); !slices.Equal(got, []int64{3, 2, 1}) {
			t.Errorf("Tail() = %d, want 3, 2, 1", got)
		}
	})
}

// Right after an election, reads may show an older state. An append meets a conflict then.
func TestAStaleReadAfterAnElectionIsHarmless(t *testing.T) {
	t.Parallel()
	onASet(t, func(t *testing.T, s *fakeReplicaSet, a, b *Ledger) {
		s.settle = 10 * time.Second
		must(t, "Append()", a.Append(within(t, time.Second), storetest.Grant("job", 1)))
		must(t, "Append()", a.Append(within(t, time.Second), storetest.Grant("job", 2)))
		s.elect(s.other(s.primary()))
		time.Sleep(time.Second)
		if got := seqs(t, b); !slices.Equal(got, []int64{1}) {
			t.Fatalf("Tail() right after an election = %d, want 1: the fake set plays an older state", got)
		}
		wantSentinel(t, "Append() after the stale read", b.Append(within(t, 20*time.Second), storetest.Grant("job", 2)), store.ErrConflict)
		time.Sleep(20 * time.Second)
		if got := seqs(t, b); !slices.Equal(got, []int64{2, 1}) {
			t.Errorf("Tail() = %d, want 2, 1", got)
		}
	})
}

func TestConformanceOnAReplicaSet(t *testing.T) {
	suites.SecondPath(t)
	t.Parallel()
	s := serveReplicaSet(t, func(f *fakeServer) { serve(t, f) })
	uri := "mongodb://" + s.members[1].addr + "," + s.members[2].addr + "/?replicaSet=rs0"
	storetest.Run(t, conforms(dial(t, uri), uri, 30))
}
