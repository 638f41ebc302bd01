package storetest_test

import (
	"context"
	"slices"

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
