package storetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// ofPaths is a defect of handles that reach the data by another path.
func ofPaths(name, seen string, in func(b *broken)) defect {
	return defect{name, func(b *broken) {
		if b.elsewhere {
			in(b)
		}
	}, "two_paths/" + seen}
}

// logOf gives a path a log, which begins with what is there when it is first used. What others
// append later is in theirs.
func logOf(b *broken) *memory.Ledger {
	log := memory.New(memory.Options{})
	records, _, _ := b.Ledger.Tail(context.Background(), "job", 1<<20)
	for _, r := range records {
		log.Put(r)
	}
	return log
}

var pathDefects = []defect{
	ofPaths("a log for each path", "of_two_paths_at_most_one_stores_a_key", func(b *broken) {
		log := logOf(b)
		b.append, b.get = log.Append, log.Get
	}),
	ofPaths("a log for each path, which shows while both are in use", "of_two_paths_that_are_used_at_once", func(b *broken) {
		b.append = func(ctx context.Context, r store.Record) error {
			if _, err := b.Ledger.Get(ctx, r.WorkerType, r.Seq); r.Check() != nil || !errors.Is(err, store.ErrNotFound) {
				return b.Ledger.Append(ctx, r)
			}
			time.Sleep(50 * time.Microsecond)
			b.Put(r.Truncated())
			return nil
		}
	}),
	ofPaths("a log for each path, which only reading shows", "what_is_stored_by_one_path_is_there_by_the_other", func(b *broken) {
		log := logOf(b)
		b.get = log.Get
	}),
	ofPaths("an append by another path that is lost", "what_is_stored_by_one_path_is_there_by_the_other", func(b *broken) {
		var mu sync.Mutex
		lost := map[string]store.Record{}
		b.append = func(ctx context.Context, r store.Record) error {
			mu.Lock()
			defer mu.Unlock()
			lost[store.Key(r.WorkerType, r.Seq)] = r
			return nil
		}
		b.get = func(ctx context.Context, workerType string, seq int64) (store.Record, error) {
			mu.Lock()
			defer mu.Unlock()
			if r, ok := lost[store.Key(workerType, seq)]; ok {
				return r, nil
			}
			return b.Ledger.Get(ctx, workerType, seq)
		}
	}),
	ofPaths("another path that is refused without saying so", "what_is_stored_by_one_path_is_there_by_the_other", func(b *broken) {
		b.append = func(context.Context, store.Record) error { return errors.New("no") }
	}),
}
