package storetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
)

// attendanceDefects are those of a roster's handles, and of what is around it.
var attendanceDefects = []defect{
	{"a roster that fails before Init", func(b *broken) {
		ready := false
		b.attend = func(ctx context.Context, all []store.Presence) error {
			if !ready {
				ready = true
				return errors.New("no such table")
			}
			return b.Ledger.Attend(ctx, all)
		}
	}, "roster_before_init/a_roster_that_was_never_initialised"},
	attending("a roster that only one handle at a time may use", "roster_before_init/a_roster_works_after_Init_by_many", func() func(context.Context, *broken, []store.Presence) error {
		var mu sync.Mutex
		return func(ctx context.Context, b *broken, all []store.Presence) error {
			if !mu.TryLock() {
				return errors.New("locked")
			}
			defer mu.Unlock()
			time.Sleep(time.Millisecond)
			return b.Ledger.Attend(ctx, all)
		}
	}()),
	{"a list that is cached", func(b *broken) {
		var mu sync.Mutex
		last := map[string][]store.Presence{}
		b.presences = func(ctx context.Context, workerType string) ([]store.Presence, error) {
			all, err := b.Ledger.Presences(ctx, workerType)
			mu.Lock()
			defer mu.Unlock()
			if old, ok := last[workerType]; ok && len(old) == len(all) {
				return old, err
			}
			last[workerType] = all
			return all, err
		}
	}, "attendance/handles_see_each_other's_presences_at_once"},
	attending("a roster that is read and written as one", "attendance/of_writers_at_the_same_time", func(ctx context.Context, b *broken, all []store.Presence) error {
		there := must(b.Ledger.Presences(ctx, ""))
		time.Sleep(time.Millisecond)
		return b.Ledger.Attend(ctx, append(slices.DeleteFunc(there, func(p store.Presence) bool {
			return slices.ContainsFunc(all, func(other store.Presence) bool { return store.ComparePresences(p, other) == 0 })
		}), all...))
	}),
	{"a roster that outlives its handle", func(b *broken) {
		other := b.Handle()
		b.presences = other.Presences
	}, "attendance/closing_a_handle"},
	{"a roster that goes with its handle", func(b *broken) {
		b.close = func(ctx context.Context) error {
			for _, p := range must(b.Ledger.Presences(ctx, "")) {
				_ = b.Ledger.Leave(ctx, p.WorkerType, []string{p.ID})
			}
			return b.Ledger.Close(ctx)
		}
	}, "attendance/closing_a_handle"},
	attending("an Attend without its context", "attendance/an_ended_context", func(ctx context.Context, b *broken, all []store.Presence) error {
		return b.Ledger.Attend(context.WithoutCancel(ctx), all)
	}),
	leaving("a Leave that fails with its context, and did it", "attendance/an_ended_context", func(ctx context.Context, b *broken, workerType string, ids []string) error {
		return errors.Join(ctx.Err(), b.Ledger.Leave(context.WithoutCancel(ctx), workerType, ids))
	}),
	{"worker types of a roster among those of the ledger", func(b *broken) {
		b.types = func(ctx context.Context) ([]string, error) {
			names, err := b.Ledger.WorkerTypes(ctx)
			for _, p := range must(b.Ledger.Presences(ctx, "")) {
				names = append(names, p.WorkerType)
			}
			slices.Sort(names)
			return slices.Compact(names), err
		}
	}, "attendance/the_roster_and_the_ledger_leave_each_other_alone"},
	{"a trim that removes the roster", func(b *broken) {
		b.trim = func(ctx context.Context, workerType string, before int64) (int, error) {
			_ = b.Ledger.Leave(ctx, workerType, []string{"a"})
			return b.Ledger.Trim(ctx, workerType, before)
		}
	}, "attendance/the_roster_and_the_ledger_leave_each_other_alone"},
	ofRosterReaders("a reader that may attend", func(b *broken) { b.attend = b.Ledger.Attend }),
	ofRosterReaders("a reader that may leave", func(b *broken) { b.leave = b.Ledger.Leave }),
	ofRosterReaders("a reader that is denied the roster", func(b *broken) {
		b.presences = func(context.Context, string) ([]store.Presence, error) { return nil, store.ErrDenied }
	}),
	ofRosterReaders("a reader that is denied to attend, and did", func(b *broken) {
		b.attend = func(ctx context.Context, all []store.Presence) error {
			return errors.Join(store.ErrDenied, b.Ledger.Attend(ctx, all))
		}
	}),
	listed("a phase that isn't known, which is passed over", "attendance/a_planted_presence_comes_back", func(all []store.Presence) []store.Presence {
		return slices.DeleteFunc(all, func(p store.Presence) bool { return p.Phase == "hologram" })
	}),
	planted("a roster that an unfit presence breaks", func(all, unfit []store.Presence) ([]store.Presence, error) {
		if len(unfit) > 0 {
			return nil, errors.New("it can't be decoded")
		}
		return all, nil
	}),
	planted("an unfit presence that is listed", func(all, unfit []store.Presence) ([]store.Presence, error) {
		return slices.SortedFunc(slices.Values(append(all, unfit...)), store.ComparePresences), nil
	}),
	planted("an unfit presence that hides those after it", func(all, unfit []store.Presence) ([]store.Presence, error) {
		return slices.DeleteFunc(all, func(p store.Presence) bool {
			return slices.ContainsFunc(unfit, func(other store.Presence) bool { return store.ComparePresences(other, p) < 0 })
		}), nil
	}),
}

// ofRosterReaders is a defect of handles without the right to write.
func ofRosterReaders(name string, in func(b *broken)) defect {
	d := ofReaders(name, "", in)
	d.seen = "attendance/a_reader_reads_the_roster"
	return d
}

// planted is a roster that does otherwise with presences that can't be read.
func planted(name string, list func(all, unfit []store.Presence) ([]store.Presence, error)) defect {
	return defect{name, func(b *broken) {
		b.presences = func(ctx context.Context, workerType string) ([]store.Presence, error) {
			all, err := b.Ledger.Presences(ctx, workerType)
			if err != nil {
				return nil, err
			}
			return list(all, b.unfit.list())
		}
	}, "attendance/a_planted_presence_that_can't_be_decoded"}
}
