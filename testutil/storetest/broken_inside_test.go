package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// insideDefects are those of the operations themselves.
var insideDefects = []defect{
	{"a start that doesn't say that Init is missing", func(b *broken) {
		b.rights = func(context.Context) error { return errors.New("no such table") }
	}, "before_init/a_start_without_Init"},
	{"a store that doesn't say what a failover loses", func(b *broken) {
		b.durability = func() store.Durability {
			return store.Durability{Crash: "All survive.", Power: "All survive."}
		}
	}, "lifecycle/what_a_store_says_of_its_durability"},
	{"a store that says it in two lines", func(b *broken) {
		b.durability = func() store.Durability {
			return store.Durability{Crash: "All\nsurvive.", Power: "All survive.", Failover: "All survive."}
		}
	}, "lifecycle/what_a_store_says_of_its_durability"},
	{"an append that overwrites", func(b *broken) {
		b.append = func(ctx context.Context, r store.Record) error {
			err := b.Ledger.Append(ctx, r)
			if errors.Is(err, store.ErrConflict) {
				b.Put(r.Truncated())
			}
			return err
		}
	}, "append/a_conflict_leaves_the_first_record_unchanged"},
	{"an append that takes a retry of itself for a success", func(b *broken) {
		b.append = func(ctx context.Context, r store.Record) error {
			err := b.Ledger.Append(ctx, r)
			if there, _ := b.Ledger.Get(ctx, r.WorkerType, r.Seq); there.Claim == r.Claim {
				return nil
			}
			return err
		}
	}, "append/a_retry_of_the_very_same_record"},
	{"a check followed by an insert, which isn't atomic", func(b *broken) {
		b.append = func(ctx context.Context, r store.Record) error {
			_, err := b.Ledger.Get(ctx, r.WorkerType, r.Seq)
			if r.Check() != nil || !errors.Is(err, store.ErrNotFound) {
				return b.Ledger.Append(ctx, r)
			}
			time.Sleep(50 * time.Microsecond)
			b.Put(r.Truncated())
			return nil
		}
	}, "race/of_64_appends_to_one_key_exactly_one_wins"},
	{"a key that is unique within each handle alone", func(b *broken) {
		var mu sync.Mutex
		taken := map[string]bool{}
		b.append = func(ctx context.Context, r store.Record) error {
			mu.Lock()
			defer mu.Unlock()
			key := store.Key(r.WorkerType, r.Seq)
			if r.Check() != nil || taken[key] {
				return b.Ledger.Append(ctx, r)
			}
			taken[key] = true
			b.Put(r.Truncated())
			return nil
		}
	}, "race/contenders_that_run_freely_win_each_key_once"},
	{"a group of appends that fails with the first of them that conflicts", grouped(func(errs []error) {
		i := slices.IndexFunc(errs, func(err error) bool { return errors.Is(err, store.ErrConflict) })
		for j := range errs {
			if i >= 0 {
				errs[j] = errs[i]
			}
		}
	}), "race/of_many_appends_at_once_each_has_its_own_outcome"},
	{"a group of appends that takes one success for that of all", grouped(func(errs []error) {
		if slices.Contains(errs, nil) {
			clear(errs)
		}
	}), "race/of_many_appends_at_once_each_has_its_own_outcome"},
	{"a group of appends whose outcomes are mixed up", grouped(slices.Reverse), "race/of_many_appends_at_once_each_has_its_own_outcome"},
	{"times that are rounded", func(b *broken) {
		b.append = func(ctx context.Context, r store.Record) error {
			for _, at := range []*time.Time{&r.WindowStart, &r.WindowEnd} {
				*at = at.Round(time.Millisecond)
			}
			return b.Ledger.Append(ctx, r)
		}
	}, "round_trip/times_are_cut_to_milliseconds"},
	edited("times that come back local", "round_trip/every_field_comes_back", func(r *store.Record) { r.WindowEnd = r.WindowEnd.In(time.FixedZone("x", 3600)) }),
	edited("a zero ReadAt that comes back as 1970", "round_trip/optional_fields_come_back_empty", func(r *store.Record) {
		if r.ReadAt.IsZero() {
			r.ReadAt = store.FromMillis(0)
		}
	}),
	edited("a DoneUntil that is forgotten", "round_trip/a_done_with_an_empty_window_comes_back", func(r *store.Record) { r.DoneUntil = time.Time{} }),
	edited("a DoneUntil of 1970 that is taken for none", "round_trip/a_DoneUntil_of_1970_is_not_none", func(r *store.Record) {
		if r.DoneUntil.UnixMilli() == 0 {
			r.DoneUntil = time.Time{}
		}
	}),
	edited("an Attempt that is forgotten", "round_trip/the_largest_Attempt_comes_back", func(r *store.Record) { r.Attempt = 0 }),
	edited("an Attempt that is kept in 16 bits", "round_trip/the_largest_Attempt_comes_back", func(r *store.Record) { r.Attempt = int(int16(r.Attempt)) }),
	edited("metadata that is cut off", "round_trip/metadata_of_8_KiB", func(r *store.Record) { r.Metadata = r.Metadata[:min(len(r.Metadata), 4<<10)] }),
	{"a tail that is one short", func(b *broken) {
		b.tail = func(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
			return b.Ledger.Tail(ctx, workerType, limit-1)
		}
	}, "tail/the_tail_is_newest_first"},
	{"a tail that is oldest first", func(b *broken) {
		b.tail = func(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
			records, s, err := b.Ledger.Tail(ctx, workerType, limit)
			slices.Reverse(records)
			return records, s, err
		}
	}, "tail/the_tail_is_newest_first"},
	{"a tail that hides what can't be decoded", func(b *broken) {
		b.tail = func(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
			records, s, err := b.Ledger.Tail(ctx, workerType, limit+5)
			records = slices.DeleteFunc(records, func(r store.Record) bool { return r.Defect != "" && r.Seq > 0 })
			return records[:min(limit, len(records))], s, err
		}
	}, "planted_documents/a_document_without_a_field_of_the_envelope"},
	edited("a defect that isn't reported", "planted_documents/a_document_without_a_field_of_the_envelope", func(r *store.Record) { r.Defect = "" }),
	edited("a defect that isn't reported, beside excessive information", "planted_documents/a_fault_of_the_envelope_is_a_Defect_beside", func(r *store.Record) { r.Defect = "" }),
	edited("information that is demanded", "planted_documents/information_beyond_the_limits", func(r *store.Record) {
		if r.Kind != "" && r.Metadata == "" {
			*r = store.Record{WorkerType: r.WorkerType, Seq: r.Seq, Defect: "metadata: unfit"}
		}
	}),
	edited("information of a wrong type that is taken for a defect", "planted_documents/information_of_a_wrong_type", func(r *store.Record) {
		if r.Kind != "" && r.Schedule == "" {
			*r = store.Record{WorkerType: r.WorkerType, Seq: r.Seq, Defect: "schedule: must be a string"}
		}
	}),
	edited("excessive information that is passed on", "planted_documents/information_beyond_the_limits", func(r *store.Record) {
		if r.Kind != "" && r.Metadata == "" {
			r.Metadata = strings.Repeat("m", 9<<10)
		}
	}),
	{"a tail that is cached", func(b *broken) {
		var mu sync.Mutex
		last := map[string][]store.Record{}
		b.tail = func(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
			records, s, err := b.Ledger.Tail(ctx, workerType, limit)
			mu.Lock()
			defer mu.Unlock()
			old, ok := last[workerType]
			last[workerType] = records
			if ok && len(old) == len(records) {
				return old, s, err
			}
			return records, s, err
		}
	}, "append/handles_see_each_other's_appends_at_once"},
	{"a tail that is read in parts, the newest last", func(b *broken) {
		b.tail = func(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
			older, _, err := b.Ledger.Tail(ctx, workerType, limit)
			if err != nil || len(older) == 0 {
				return b.Ledger.Tail(ctx, workerType, limit)
			}
			time.Sleep(50 * time.Microsecond)
			newest, s, err := b.Ledger.Tail(ctx, workerType, 1)
			if err == nil && newest[0].Seq > older[0].Seq {
				older = append(newest, older[:min(len(older), limit-1)]...)
			}
			return older, s, err
		}
	}, "race/a_tail_shows_no_record_without_those_before_it"},
	{"a trim that takes the head", func(b *broken) {
		b.trim = func(ctx context.Context, workerType string, before int64) (int, error) {
			n, err := b.Ledger.Trim(ctx, workerType, before)
			if records, _, _ := b.Ledger.Tail(ctx, workerType, 1); len(records) > 0 && records[0].Seq < before {
				n++
			}
			return n, err
		}
	}, "trim/a_trim_never_takes_the_head"},
	{"a trim without a bound", func(b *broken) {
		b.trim = func(ctx context.Context, workerType string, before int64) (total int, err error) {
			for {
				n, err := b.Ledger.Trim(ctx, workerType, before)
				if total += n; n == 0 || err != nil {
					return total, err
				}
			}
		}
	}, "trim/one_trim_deletes_at_most_TrimBatch"},
	{"worker types that aren't sorted", func(b *broken) {
		b.types = func(ctx context.Context) ([]string, error) {
			names, err := b.Ledger.WorkerTypes(ctx)
			slices.Reverse(names)
			return names, err
		}
	}, "tail/worker_types_are_listed_in_byte_order"},
	{"names that are taken for prefixes", func(b *broken) {
		b.tail = func(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
			names, _ := b.Ledger.WorkerTypes(ctx)
			for _, name := range names {
				if workerType != "" && strings.HasPrefix(name, workerType) {
					workerType = name
				}
			}
			return b.Ledger.Tail(ctx, workerType, limit)
		}
	}, "tail/worker_types_with_kindred_names"},
	{"a time of the year 10000 that is kept", func(b *broken) {
		b.append = func(ctx context.Context, r store.Record) error {
			if r.ReadAt.Year() > 9999 {
				b.Put(r.Truncated())
				return nil
			}
			return b.Ledger.Append(ctx, r)
		}
	}, "round_trip/a_time_outside_the_years_1_to_9999"},
	{"a time of the year 10000 that is refused without a reason", func(b *broken) {
		b.append = func(ctx context.Context, r store.Record) error {
			if r.DoneUntil.Year() > 9999 {
				return store.ErrInvalid
			}
			return b.Ledger.Append(ctx, r)
		}
	}, "round_trip/a_time_outside_the_years_1_to_9999"},
	edited("times that end with the year 9998", "round_trip/the_first_and_the_last_time", func(r *store.Record) {
		if r.ReadAt.Year() > 9998 {
			*r = store.Record{WorkerType: r.WorkerType, Seq: r.Seq, Defect: "readAt: too late"}
		}
	}),
	{"a window of less than a millisecond that is kept", func(b *broken) {
		b.append = func(ctx context.Context, r store.Record) error {
			if r.Seq > 0 && r.WindowEnd.Sub(r.WindowStart) < time.Millisecond && r.WindowStart.Before(r.WindowEnd) {
				b.Put(r.Truncated())
				return nil
			}
			return b.Ledger.Append(ctx, r)
		}
	}, "round_trip/a_window_that_is_none_in_whole_milliseconds"},
	edited("a planted year 10000 that is passed on", "planted_documents/a_document_with_a_time_of_its_envelope_outside", func(r *store.Record) {
		if strings.Contains(r.Defect, "years") {
			*r = storetest.Grant(r.WorkerType, r.Seq)
			r.ReadAt = time.Date(10_000, time.January, 1, 0, 0, 0, 0, time.UTC)
		}
	}),
	{"a get that a planted year 10000 breaks", func(b *broken) {
		b.get = func(ctx context.Context, workerType string, seq int64) (store.Record, error) {
			r, err := b.Ledger.Get(ctx, workerType, seq)
			if strings.Contains(r.Defect, "years") {
				err = errors.New(r.Defect)
			}
			return r, err
		}
	}, "planted_documents/a_document_with_a_time_of_its_envelope_outside"},
	edited("information of the year 10000 that is taken for a defect", "planted_documents/information_of_a_wrong_type", func(r *store.Record) {
		if r.Kind != "" && r.FixedAt.IsZero() {
			*r = store.Record{WorkerType: r.WorkerType, Seq: r.Seq, Defect: "fixedAt: too late"}
		}
	}),
	{"an ErrInvalid that is lost", func(b *broken) {
		b.append = func(ctx context.Context, r store.Record) error {
			if err := b.Ledger.Append(ctx, r); !errors.Is(err, store.ErrInvalid) {
				return err
			}
			return nil
		}
	}, "hostile_names/an_append_under_a_hostile_name"},
	{"a context that is ignored", func(b *broken) {
		b.get = func(ctx context.Context, workerType string, seq int64) (store.Record, error) {
			return b.Ledger.Get(context.WithoutCancel(ctx), workerType, seq)
		}
	}, "context/a_cancelled_context"},
	{"a Close that does nothing", func(b *broken) {
		b.close = func(context.Context) error { return nil }
	}, "lifecycle/every_operation_of_a_closed_ledger"},
	{"a clock that goes back", func(b *broken) {
		ahead := 0 * time.Second
		b.now = func(ctx context.Context) (store.Stamp, error) {
			s, err := b.Ledger.Now(ctx)
			ahead = time.Second - ahead
			s.Time = s.Time.Add(ahead)
			return s, err
		}
	}, "time/the_store's_clock_never_goes_back"},
	{"a clock that stands", func(b *broken) {
		s, _ := b.Ledger.Now(context.Background())
		b.now = func(context.Context) (store.Stamp, error) { return s, nil }
	}, "time/Now_brackets_the_store's_time"},
	{"a stamp that wasn't truncated", func(b *broken) {
		b.now = func(ctx context.Context) (store.Stamp, error) {
			s, err := b.Ledger.Now(ctx)
			s.Granularity = time.Hour
			return s, err
		}
	}, "time/a_stamp_is_in_UTC"},
	{"a foreign unique index that is taken for the key", func(b *broken) {
		constrain(b, "planted_unique", store.ErrConflict)
	}, "foreign_constraints/a_foreign_unique_index_is_no_conflict"},
	{"a foreign unique index that isn't named", func(b *broken) {
		constrain(b, "planted_unique", fmt.Errorf("%w: an index", store.ErrRefused))
	}, "foreign_constraints/a_foreign_unique_index_is_no_conflict"},
	{"a foreign unique index that is an outcome unknown for good", func(b *broken) {
		constrain(b, "planted_unique", errors.New("planted_unique"))
	}, "foreign_constraints/a_foreign_unique_index_is_refused"},
	{"a trigger that goes unnoticed", func(b *broken) {
		constrain(b, "planted_trigger", nil)
	}, "foreign_constraints/a_trigger_that_drops_records_is_an_error"},
	{"a trigger that is an outcome unknown for good", func(b *broken) {
		constrain(b, "planted_trigger", errors.New("planted_trigger"))
	}, "foreign_constraints/a_trigger_that_drops_records_is_refused"},
	{"a boot time that drifts against the store's", func(b *broken) {
		b.now = func(ctx context.Context) (store.Stamp, error) {
			s, err := b.Ledger.Now(ctx)
			s.Boottime = time.Duration(s.Time.UnixNano() / 101 * 100)
			return s, err
		}
	}, "time/Now_brackets"},
	{"a tail without the stamp that was promised", func(b *broken) {
		b.tail = func(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
			records, _, err := b.Ledger.Tail(ctx, workerType, limit)
			return records, store.Stamp{}, err
		}
	}, "time/Tail_gives_a_stamp"},
}

// constrainedBy is the name of what was planted into a ledger, or empty.
func constrainedBy(l *memory.Ledger) string {
	names, _, _ := l.Tail(context.Background(), "planted", 1)
	if len(names) == 0 {
		return ""
	}
	return names[0].Metadata
}

// constrain is an append by a ledger that refuses what was planted, as it should be, in another
// way if it was planted by a name.
func constrain(b *broken, name string, otherwise error) {
	b.append = func(ctx context.Context, r store.Record) error {
		switch planted := constrainedBy(b.Ledger); {
		case planted == "" || r.Check() != nil:
			return b.Ledger.Append(ctx, r)
		case planted == name:
			return otherwise
		default:
			return fmt.Errorf("%w: %s", store.ErrRefused, planted)
		}
	}
}
