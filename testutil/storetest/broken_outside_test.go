package storetest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// outsideDefects are those of stores that documents of another program lead astray.
var outsideDefects = []defect{
	{"worker types that a hostile name breaks", func(b *broken) {
		b.types = func(ctx context.Context) ([]string, error) {
			names, err := b.Ledger.WorkerTypes(ctx)
			for _, name := range names {
				err = errors.Join(err, store.CheckWorkerType(name))
			}
			return names, err
		}
	}, "hostile_names_from_outside/records_under_hostile_names_are_listed_as_they_are"},
	{"worker types that are cut off at the colon", func(b *broken) {
		b.types = func(ctx context.Context) ([]string, error) {
			names, err := b.Ledger.WorkerTypes(ctx)
			for i, name := range names {
				names[i], _, _ = strings.Cut(name, ":")
			}
			return names, err
		}
	}, "hostile_names_from_outside/records_under_hostile_names_are_listed_as_they_are"},
	{"worker types that end at a hostile name", func(b *broken) {
		b.types = func(ctx context.Context) ([]string, error) {
			names, err := b.Ledger.WorkerTypes(ctx)
			for i, name := range names {
				if store.CheckWorkerType(name) != nil {
					return names[:i], err
				}
			}
			return names, err
		}
	}, "hostile_names_from_outside/records_under_hostile_names_are_listed_as_they_are"},
	{"a hostile name that is made a good one", func(b *broken) {
		b.get = func(ctx context.Context, workerType string, seq int64) (store.Record, error) {
			r, err := b.Ledger.Get(ctx, workerType, seq)
			r.WorkerType = "job"
			return r, err
		}
	}, "hostile_names_from_outside/a_record_under_a_hostile_name_is_never_one_to_obey"},
	{"a tail that goes by the beginning of a key", func(b *broken) {
		b.tail = func(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
			records, s, err := b.Ledger.Tail(ctx, workerType, limit)
			if len(records) == 0 {
				records, s, err = b.Ledger.Tail(ctx, workerType+":", limit)
			}
			return records, s, err
		}
	}, "hostile_names_from_outside/records_under_hostile_names_take_no_part"},
}

// reader is a handle that has no right to write.
func reader(m *memory.Ledger, unfit *unfit) *broken {
	b := intact(m.Handle(), unfit)
	b.reading = true
	b.append = func(context.Context, store.Record) error { return store.ErrDenied }
	b.trim = func(context.Context, string, int64) (int, error) { return 0, store.ErrDenied }
	b.attend = func(context.Context, []store.Presence) error { return store.ErrDenied }
	b.leave = func(context.Context, string, []string) error { return store.ErrDenied }
	return b
}

// ofReaders is a defect of handles without the right to write.
func ofReaders(name, seen string, in func(b *broken)) defect {
	return defect{name, func(b *broken) {
		if b.reading {
			in(b)
		}
	}, "readers/" + seen}
}

var readerDefects = []defect{
	ofReaders("a reader that may append", "a_reader_is_denied", func(b *broken) { b.append = b.Ledger.Append }),
	ofReaders("a reader that may trim", "a_reader_is_denied", func(b *broken) { b.trim = b.Ledger.Trim }),
	ofReaders("a reader that is denied to append, and did", "a_reader_is_denied", func(b *broken) {
		b.append = func(ctx context.Context, r store.Record) error {
			return errors.Join(store.ErrDenied, b.Ledger.Append(ctx, r))
		}
	}),
	ofReaders("a reader that is denied to trim, and did", "a_reader_is_denied", func(b *broken) {
		b.trim = func(ctx context.Context, workerType string, before int64) (int, error) {
			_, _ = b.Ledger.Trim(ctx, workerType, before)
			return 0, store.ErrDenied
		}
	}),
	ofReaders("a reader that is denied without saying so", "a_reader_is_denied", func(b *broken) {
		b.append = func(context.Context, store.Record) error { return errors.New("no") }
	}),
	ofReaders("a reader that is denied to read", "a_reader_reads_all", func(b *broken) {
		b.types = func(context.Context) ([]string, error) { return nil, store.ErrDenied }
	}),
	ofReaders("a reader without the time", "a_reader_reads_all", func(b *broken) {
		b.now = func(context.Context) (store.Stamp, error) { return store.Stamp{}, store.ErrDenied }
	}),
	ofReaders("a reader that hides what can't be decoded", "a_reader_reads_all", func(b *broken) {
		b.tail = func(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
			records, s, err := b.Ledger.Tail(ctx, workerType, limit)
			if len(records) > 0 && records[0].Defect != "" {
				records = records[1:]
			}
			return records, s, err
		}
	}),
	ofReaders("a reader that reads a copy", "a_reader_sees_what_is_appended", func(b *broken) {
		var once sync.Once
		var records []store.Record
		var stamp store.Stamp
		b.tail = func(ctx context.Context, workerType string, limit int) (_ []store.Record, _ store.Stamp, err error) {
			once.Do(func() { records, stamp, err = b.Ledger.Tail(ctx, workerType, limit) })
			return records, stamp, err
		}
	}),
}

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
