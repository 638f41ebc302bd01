package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Contend takes part in a race for the keys 1 … rounds of a worker type: each of its
// goroutines appends its own grant to every key in turn. It returns the Seqs that were
// won here, sorted; a Seq that was won twice is in it twice.
//
// It is for a race across processes: each runs Contend on its own handle with its own
// ident, and a parent passes all results to CheckWins. To settle an unknown outcome,
// Contend reads the key and compares the Claim; an append that was stored but returned
// ErrConflict counts as won. Contend fails when ctx ends, or when a key can't be settled.
func Contend(ctx context.Context, l store.Ledger, workerType string, rounds, goroutines int, ident string) (won []int64, err error) {
	var (
		mu   sync.Mutex
		errs []error
		// mine has the Seq of each claim that was made here and not yet won.
		mine = map[string]int64{}
		wg   sync.WaitGroup
	)
	for range goroutines {
		wg.Go(func() {
			for seq := int64(1); seq <= int64(rounds); seq++ {
				r := Grant(workerType, seq)
				r.InstanceID = ident
				r.Claim = rand.Text()
				ok, err := appendOrSettle(ctx, l, r)
				mu.Lock()
				switch {
				case err != nil:
					errs = append(errs, err)
				case ok:
					won = append(won, seq)
				default:
					mine[r.Claim] = seq
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		return won, errors.Join(errs...)
	}
	records, _, err := l.Tail(ctx, workerType, rounds)
	if err != nil {
		return won, fmt.Errorf("contend: read the outcome: %w", err)
	}
	for _, r := range records {
		if _, ok := mine[r.Claim]; ok {
			won = append(won, r.Seq)
		}
	}
	slices.Sort(won)
	return won, nil
}

// appendOrSettle appends until the record is there or another has its key.
func appendOrSettle(ctx context.Context, l store.Ledger, r store.Record) (won bool, err error) {
	for range 100 {
		err = l.Append(ctx, r)
		if err == nil {
			return true, nil
		}
		if errors.Is(err, store.ErrConflict) {
			return false, nil
		}
		found, getErr := l.Get(ctx, r.WorkerType, r.Seq)
		if getErr == nil {
			return found.Claim == r.Claim, nil
		}
		if ctx.Err() != nil || errors.Is(err, store.ErrInvalid) {
			break
		}
		wall.Sleep(10 * time.Millisecond)
	}
	return false, fmt.Errorf("contend: key %s: %w", store.Key(r.WorkerType, r.Seq), err)
}

// CheckWins demands that each Seq from 1 to rounds was won exactly once among
// all contenders.
func CheckWins(t testing.TB, rounds int, wins ...[]int64) {
	t.Helper()
	count := map[int64]int{}
	for _, w := range wins {
		for _, seq := range w {
			count[seq]++
		}
	}
	for seq := int64(1); seq <= int64(rounds); seq++ {
		if count[seq] != 1 {
			t.Errorf("Seq %d was won %d times, want exactly once", seq, count[seq])
		}
		delete(count, seq)
	}
	for seq, n := range count {
		t.Errorf("Seq %d was won %d times, want none beyond %d", seq, n, rounds)
	}
}
