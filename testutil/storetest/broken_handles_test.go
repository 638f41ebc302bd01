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
)

// paging is a ledger whose pages are made of a good one's.
func paging(name, seen string, page func(b *broken, ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error)) defect {
	return defect{name, func(b *broken) {
		b.page = func(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
			return page(b, ctx, workerType, after, limit)
		}
	}, "page/" + seen}
}

// pageDefects are those of a store.Pager.
var pageDefects = []defect{
	paging("a page that is newest first", "a_page_is_oldest_first", func(b *broken, ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
		got, err := b.Ledger.Page(ctx, workerType, after, limit)
		slices.Reverse(got)
		return got, err
	}),
	paging("a page that begins with the key it is to be above", "a_page_is_oldest_first", func(b *broken, ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
		return b.Ledger.Page(ctx, workerType, max(after, 1)-1, limit)
	}),
	paging("a page that is one too long", "a_page_is_oldest_first", func(b *broken, ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
		return b.Ledger.Page(ctx, workerType, after, limit+1)
	}),
	paging("pages that go by the number of records, not by their keys", "a_page_begins_above_what_was_trimmed", func(b *broken, ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
		got, err := b.Ledger.Page(ctx, workerType, 0, store.MaxPage)
		got = got[min(max(after, 0), int64(len(got))):]
		return got[:max(0, min(limit, len(got)))], err
	}),
	paging("a page without a bound", "a_page_has_at_most_MaxPage_records", func(b *broken, ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
		first, err := b.Ledger.Page(ctx, workerType, after, limit)
		if err != nil || len(first) < store.MaxPage || limit <= store.MaxPage {
			return first, err
		}
		rest, err := b.Ledger.Page(ctx, workerType, first[len(first)-1].Seq, limit)
		return append(first, rest...), err
	}),
	paging("a page of all worker types", "a_page_of_an_empty_ledger", func(b *broken, ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
		got, err := b.Ledger.Page(ctx, workerType, after, limit)
		if other, _ := b.Ledger.Page(ctx, "other", after, limit); len(got) == 0 {
			return other, err
		}
		return got, err
	}),
	paging("a page that hides what can't be decoded", "documents_that_can't_be_decoded", func(b *broken, ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
		got, err := b.Ledger.Page(ctx, workerType, after, limit)
		return slices.DeleteFunc(got, func(r store.Record) bool { return r.Defect != "" }), err
	}),
	paging("a page that follows any key", "keys_that_can't_be_followed", func(b *broken, ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
		got, err := b.Ledger.Page(ctx, workerType, after, limit)
		if r, _ := b.Get(ctx, workerType, -1); after < -1 && r.WorkerType != "" && len(got) < limit {
			got = slices.Insert(got, 0, r)
		}
		return got, err
	}),
	paging("a page that reports keys that can't be followed, as a tail does", "keys_that_can't_be_followed", func(b *broken, ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
		got, err := b.Ledger.Page(ctx, workerType, after, limit)
		if newest, _, _ := b.Ledger.Tail(ctx, workerType, 1); len(newest) > 0 && newest[0].Seq == 0 {
			got = slices.Insert(got, 0, newest[0])
		}
		return got, err
	}),
	paging("pages that end below the last key", "the_last_key_is_in_a_page", func(b *broken, ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
		got, err := b.Ledger.Page(ctx, workerType, after, limit)
		return slices.DeleteFunc(got, func(r store.Record) bool { return r.Seq == store.MaxSeq }), err
	}),
	paging("pages that are behind", "pages_lack_nothing_that_was_acknowledged", func(b *broken, ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
		got, err := b.Ledger.Page(ctx, workerType, after, limit)
		if len(got) > 0 && len(got) < limit {
			got = got[:len(got)-1]
		}
		return got, err
	}),
	{"pages of a closed ledger", func(b *broken) {
		b.page = func(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
			return b.Handle().Page(ctx, workerType, after, limit)
		}
	}, "lifecycle/every_operation_of_a_closed_ledger"},
}

// followed is a ledger whose appends above a known record are made of a good one's.
func followed(name, seen string, after func(b *broken, ctx context.Context, r, prev store.Record) error) defect {
	return defect{name, func(b *broken) {
		b.after = func(ctx context.Context, r, prev store.Record) error { return after(b, ctx, r, prev) }
	}, "append_after/" + seen}
}

// checking is one that decides by what it reads, whether a record below fits, and appends then.
func checking(name, seen string, fits func(below, prev store.Record, err error) bool) defect {
	return followed(name, seen, func(b *broken, ctx context.Context, r, prev store.Record) error {
		if err := store.CheckAfter(r, prev); err != nil {
			return err
		}
		if _, err := b.Ledger.Get(ctx, r.WorkerType, r.Seq); err == nil {
			return store.ErrConflict
		}
		if below, err := b.Ledger.Get(ctx, prev.WorkerType, prev.Seq); !fits(below, prev, err) {
			return store.WentBack(prev)
		}
		return b.Ledger.Append(ctx, r)
	})
}

// followDefects are those of a store.Follower.
var followDefects = []defect{
	followed("appends that never look below", "without_the_record_below", func(b *broken, ctx context.Context, r, _ store.Record) error {
		return b.Ledger.Append(ctx, r)
	}),
	followed("appends that refuse every record", "a_record_is_appended_above", func(_ *broken, _ context.Context, _, prev store.Record) error {
		return store.WentBack(prev)
	}),
	checking("any record below will do", "with_another_record_below", func(_, _ store.Record, err error) bool { return err == nil }),
	checking("a claim is enough", "with_another_record_below", func(below, prev store.Record, _ error) bool { return below.Claim == prev.Claim }),
	checking("names are compared without regard to case", "with_another_record_below", func(below, prev store.Record, err error) bool {
		return err == nil && strings.EqualFold(below.Claim, prev.Claim) && strings.EqualFold(string(below.Kind), string(prev.Kind)) && strings.EqualFold(below.InstanceID, prev.InstanceID)
	}),
	checking("blanks at the end are ignored", "with_another_record_below", func(below, prev store.Record, _ error) bool {
		below.Claim, prev.Claim = strings.TrimRight(below.Claim, " "), strings.TrimRight(prev.Claim, " ")
		below.InstanceID, prev.InstanceID = strings.TrimRight(below.InstanceID, " "), strings.TrimRight(prev.InstanceID, " ")
		return store.SameRecord(below, prev)
	}),
	checking("all of the record below is compared", "only_the_claim", func(below, prev store.Record, _ error) bool { return below == prev }),
	checking("what can't be read will do", "a_record_below_that_can't_be_read", func(below, prev store.Record, _ error) bool {
		return below.Defect != "" || store.SameRecord(below, prev)
	}),
	followed("a conflict comes second", "a_conflict_is_one", func(b *broken, ctx context.Context, r, prev store.Record) error {
		if below, err := b.Ledger.Get(ctx, prev.WorkerType, prev.Seq); store.CheckAfter(r, prev) == nil && (err != nil || !store.SameRecord(below, prev)) {
			return store.WentBack(prev)
		}
		return b.Ledger.AppendAfter(ctx, r, prev)
	}),
	followed("the record below need not be right below", "what_isn't_right_above", func(b *broken, ctx context.Context, r, prev store.Record) error {
		prev.Seq = r.Seq - 1
		if below, err := b.Ledger.Get(ctx, prev.WorkerType, prev.Seq); err == nil && r.Claim != "" {
			return b.Ledger.AppendAfter(ctx, r, below)
		}
		return b.Ledger.AppendAfter(ctx, r, prev)
	}),
	followed("a refusal that leaves the outcome open", "without_the_record_below", func(b *broken, ctx context.Context, r, prev store.Record) error {
		err := b.Ledger.AppendAfter(ctx, r, prev)
		if errors.Is(err, store.ErrWentBack) {
			return fmt.Errorf("%w: %s", store.ErrWentBack, err.Error())
		}
		return err
	}),
	{"a refusal is that of all appends of the moment", func(b *broken) {
		var mu sync.Mutex
		var refused time.Time
		b.after = func(ctx context.Context, r, prev store.Record) error {
			err := b.Ledger.AppendAfter(ctx, r, prev)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, store.ErrWentBack):
				refused = time.Now()
			case err == nil && time.Since(refused) < 5*time.Millisecond:
				return store.WentBack(prev)
			}
			return err
		}
	}, "append_after/of_many_appends_above_known_records"},
	{"two appends above a record may win", func(b *broken) {
		b.after = func(ctx context.Context, r, prev store.Record) error {
			err := b.Ledger.AppendAfter(ctx, r, prev)
			if errors.Is(err, store.ErrConflict) && strings.HasPrefix(r.InstanceID, "racer-7-") {
				return nil
			}
			return err
		}
	}, "append_after/of_64_appends"},
	followed("no hint of a release above a known record", "a_hint_comes_after_a_release", func(b *broken, ctx context.Context, r, prev store.Record) error {
		if !store.Frees(r.Kind) {
			return b.Ledger.AppendAfter(ctx, r, prev)
		}
		b.Put(r)
		return nil
	}),
	{"appends of a closed ledger above a known record", func(b *broken) {
		b.after = func(ctx context.Context, r, prev store.Record) error { return b.Handle().AppendAfter(ctx, r, prev) }
	}, "lifecycle/every_operation_of_a_closed_ledger"},
}

// watchDefects are those of hints.
var watchDefects = []defect{
	{"a watch that goes on after it has returned", func(b *broken) {
		b.watch = func(ctx context.Context, changed func(string)) error {
			ended := make(chan error, 1)
			go func() { ended <- b.Ledger.Watch(context.WithoutCancel(ctx), changed) }()
			select {
			case err := <-ended:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}, "watch/nobody_is_told_after_Watch_has_returned"},
	{"a watch that doesn't say why it ends", func(b *broken) {
		b.watch = func(ctx context.Context, changed func(string)) error {
			_ = b.Ledger.Watch(ctx, changed)
			return errors.New("it ended")
		}
	}, "watch/a_watch_ends_when_its_handle_is_closed,_and_those_of_other_handles_go_on"},
}
