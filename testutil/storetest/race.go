package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// The size of the race for keys: goroutines, and handles that they share.
const (
	racers      = 64
	raceHandles = 4
	rounds      = 1000
	shortRounds = 100
)

var raceCases = []testCase{
	{"of 64 appends to one key exactly one wins", appendRace},
	{"contenders that run freely win each key once", func(t *testing.T, b *bench) {
		n := max(b.rounds()/10, 5)
		ctx := lasting(t, 10*patience)
		wins := make([][]int64, raceHandles)
		var wg sync.WaitGroup
		for i := range wins {
			l := b.handle(t)
			wg.Go(func() {
				won, err := Contend(ctx, l, "job", n, racers/raceHandles, fmt.Sprintf("process-%d", i))
				if err != nil {
					t.Errorf("Contend() = %v, want nil", err)
				}
				wins[i] = won
			})
		}
		wg.Wait()
		CheckWins(t, n, wins...)
	}},
	{"of many appends at once each has its own outcome", appendCrowd},
	{"appends to different worker types don't disturb one another", func(t *testing.T, b *bench) {
		ctx := lasting(t, 10*patience)
		const types, each = 8, 25
		handles := []store.Ledger{b, b.handle(t)}
		var wg sync.WaitGroup
		for i := range types {
			wg.Go(func() {
				for seq := int64(1); seq <= each; seq++ {
					if err := handles[i%2].Append(ctx, Grant(fmt.Sprint("job", i), seq)); err != nil {
						t.Errorf("Append(job%d, %d) = %v, want nil: nobody else appends to this type", i, seq, err)
					}
				}
			})
		}
		wg.Wait()
		for i := range types {
			got := tail(t, handles[0], fmt.Sprint("job", i), 99)
			if len(got) != each || got[0].Seq != each {
				t.Errorf("Tail(job%d) = %d records, want %d", i, len(got), each)
			}
		}
	}},
	{"a tail shows every append that was acknowledged before it, while a trim goes on", tailRace},
	{"a tail shows no record without those before it, while appends go on", denseRace},
}

// roundsVariable names the environment variable that sets the rounds of all suites, for
// long runs.
const roundsVariable = "SLOTLEASE_RACE_ROUNDS"

func (b *bench) rounds() int {
	n, _ := strconv.Atoi(os.Getenv(roundsVariable))
	switch {
	case n > 0:
		return n
	case b.Rounds > 0:
		return b.Rounds
	case testing.Short():
		return shortRounds
	default:
		return rounds
	}
}

// appendRace lets all racers append to one key, then all to the next.
func appendRace(t *testing.T, b *bench) {
	const workerType = "job"
	handles := make([]store.Ledger, raceHandles)
	for i := range handles {
		handles[i] = b.handle(t)
	}
	n := b.rounds()
	ctx := lasting(t, 10*patience)
	// unsure[seq] counts the replies that were neither nil nor ErrConflict.
	wins, unsure := make([][]string, n+1), make([]int, n+1)
	var mu sync.Mutex
	for seq := 1; seq <= n; seq++ {
		start := make(chan struct{})
		var wg sync.WaitGroup
		for g := range racers {
			r := claimed(workerType, int64(seq), fmt.Sprintf("racer-%d-%d", g, seq))
			wg.Go(func() {
				<-start
				err := handles[g%raceHandles].Append(ctx, r)
				if errors.Is(err, store.ErrConflict) {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					wins[seq] = append(wins[seq], r.Claim)
				} else {
					unsure[seq]++
					t.Logf("Append(%s, %d) by racer %d = %v: unknown", workerType, seq, g, err)
				}
			})
		}
		close(start)
		wg.Wait()
	}
	records := tail(t, handles[0], workerType, n+racers)
	if len(records) != n {
		t.Errorf("Tail after %d rounds = %d records, want as many", n, len(records))
	}
	for i, r := range records {
		if want := int64(len(records) - i); r.Seq != want {
			t.Fatalf("Tail after the race: Seq %d at place %d, want %d: the ledger must be dense", r.Seq, i, want)
		}
		switch won := wins[r.Seq]; {
		case len(won) > 1:
			t.Errorf("Seq %d: %d appends returned nil, want exactly one", r.Seq, len(won))
		case len(won) == 1 && won[0] != r.Claim:
			t.Errorf("Seq %d has claim %s, want that of the append that returned nil, %s", r.Seq, r.Claim, won[0])
		case len(won) == 0 && unsure[r.Seq] == 0:
			// The contract allows it (a retry within the store), and workers handle it.
			t.Logf("Seq %d: stored, and yet every append returned ErrConflict", r.Seq)
		}
	}
}

// appendCrowd lets one handle append all at once to keys that are free, to keys that are taken, and to keys
// that two appends want. A store may commit them together; the outcome of one is none of another's.
func appendCrowd(t *testing.T, b *bench) {
	const each = 40
	ctx := lasting(t, 10*patience)
	for round := range min(max(b.rounds()/30, 1), 3) {
		key := func(kind string, i int) string { return fmt.Sprintf("%s%d-%d", kind, round, i) }
		for i := range each {
			add(t, b, claimed(key("taken", i), 1, "first"))
		}
		type attempt struct {
			store.Record
			err error
		}
		var all []*attempt
		for i := range each {
			for _, r := range []store.Record{
				claimed(key("free", i), 1, "only"), claimed(key("taken", i), 1, "second"),
				claimed(key("wanted", i), 1, "one"), claimed(key("wanted", i), 1, "other"),
			} {
				all = append(all, &attempt{Record: r})
			}
		}
		start := make(chan struct{})
		var wg sync.WaitGroup
		for _, a := range all {
			wg.Go(func() {
				<-start
				a.err = b.Append(ctx, a.Record)
			})
		}
		close(start)
		wg.Wait()
		for _, a := range all {
			name, got := store.Key(a.WorkerType, a.Seq), get(t, b, a.WorkerType, a.Seq)
			stored, by := got.Claim == a.Claim, a.InstanceID
			switch {
			case a.err == nil && !stored:
				t.Errorf("Append(%s) by %s = nil, but the key has the record of %s", name, by, got.InstanceID)
			case a.err == nil:
				wantRecord(t, "Get("+name+")", got, a.Record)
			case by == "only":
				t.Errorf("Append(%s) = %v, want nil: nobody else appends to this key", name, a.err)
			case !errors.Is(a.err, store.ErrConflict) && by == "second":
				t.Errorf("Append(%s) = %v, want ErrConflict: the key is taken", name, a.err)
			case !errors.Is(a.err, store.ErrConflict) || stored:
				t.Logf("Append(%s) by %s = %v, stored: %t", name, by, a.err, stored) // See appendRace.
			}
		}
	}
}

// tailRace appends, reads and trims at once.
func tailRace(t *testing.T, b *bench) {
	const last = 150
	reader, trimmer := b.handle(t), b.handle(t)
	ctx, cancel := context.WithCancel(lasting(t, 10*patience))
	defer cancel()
	var acknowledged atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			seen := int64(0)
			for acknowledged.Load() < last && ctx.Err() == nil {
				least := max(seen, acknowledged.Load())
				records, _, err := reader.Tail(ctx, "job", 2)
				if err != nil {
					t.Errorf("Tail(job, 2) = %v, want nil", err)
					return
				}
				if len(records) > 0 {
					seen = records[0].Seq
				}
				if seen < least {
					t.Errorf("Tail(job, 2) shows head %d, want at least %d: it was acknowledged, or seen, before", seen, least)
					return
				}
			}
		})
	}
	wg.Go(func() {
		for acknowledged.Load() < last && ctx.Err() == nil {
			if _, err := trimmer.Trim(ctx, "job", store.MaxSeq); err != nil {
				t.Errorf("Trim(job, MaxSeq) = %v, want nil", err)
				return
			}
		}
	})
	for seq := int64(1); seq <= last; seq++ {
		if err := b.Append(ctx, Grant("job", seq)); err != nil {
			t.Errorf("Append(job, %d) = %v, want nil: nobody else appends", seq, err)
			break
		}
		acknowledged.Store(seq)
	}
	if t.Failed() {
		cancel()
	}
	wg.Wait()
	wantSeqs(t, "Tail(job, 1) after the race", tail(t, b, "job", 1), last)
}

// denseRace appends and reads several records at once. Each was appended after the one before was acknowledged, so no
// moment has it without that.
func denseRace(t *testing.T, b *bench) {
	const limit, reads, burst = 16, 200, 16
	first := int64(8 * b.rounds())
	last := first + int64(max(b.rounds(), 150))
	ctx := lasting(t, 10*patience)
	addMany(t, b, first-1)
	var ended atomic.Bool
	var read atomic.Int64
	var wg sync.WaitGroup
	for range raceHandles {
		reader := b.handle(t)
		wg.Go(func() {
			for !ended.Load() && ctx.Err() == nil {
				records, _, err := reader.Tail(ctx, "job", limit)
				if err != nil {
					t.Errorf("Tail(job, %d) = %v, want nil", limit, err)
					return
				}
				read.Add(1)
				var got, want []int64
				for i, r := range records {
					got, want = append(got, r.Seq), append(want, records[0].Seq-int64(i))
				}
				if !slices.Equal(got, want) {
					t.Errorf("Tail(job, %d) = Seqs %d, want %d: each was stored before the one above it", limit, got, want)
					return
				}
			}
		})
	}
	for seq := first; seq <= last && !t.Failed(); seq++ {
		// A server whose reads are slow gets no longer ledger than others, which would make them slower still. In a burst
		// nothing waits, so that several appends fall into one read.
		for ((seq-first)%burst == 0 || seq == last) && read.Load()*(last-first) < reads*(seq-first) && !t.Failed() && ctx.Err() == nil {
			time.Sleep(100 * time.Microsecond)
		}
		if err := b.Append(ctx, Grant("job", seq)); err != nil {
			t.Errorf("Append(job, %d) = %v, want nil: nobody else appends", seq, err)
		}
	}
	ended.Store(true)
	wg.Wait()
}
