package verification

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// trimmedAmid is a ledger that is trimmed while a page is read of which the first part has come, as from a
// server that sends it in several batches, and from which other keys are gone then.
type trimmedAmid struct {
	*memory.Ledger

	part, before int
	keys         []int64
	done         bool
}

func (l *trimmedAmid) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	page, err := l.Ledger.Page(ctx, workerType, after, limit)
	if l.done || err != nil {
		return slices.DeleteFunc(page, func(r store.Record) bool { return slices.Contains(l.keys, r.Seq) }), err
	}
	l.done = true
	for range l.before/store.TrimBatch + 1 {
		if _, err := l.Trim(ctx, workerType, int64(l.before)); err != nil {
			return nil, err
		}
	}
	rest, err := l.Ledger.Page(ctx, workerType, page[l.part-1].Seq, limit)
	return slices.DeleteFunc(append(page[:l.part], rest...), func(r store.Record) bool {
		return int(r.Seq) > l.part && slices.Contains(l.keys, r.Seq)
	}), err
}

func TestATrimMeanwhileIsNoFault(t *testing.T) {
	for name, c := range map[string]struct {
		part, before int
		keys         []int64 // which the trim has deleted before older ones
	}{
		"in the middle of a page":      {part: 700, before: 1300},
		"between two pages":            {part: 1000, before: 1500},
		"of a batch that is under way": {part: 700, before: 600, keys: []int64{650, 701, 702, 710}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &trimmedAmid{Ledger: memory.New(memory.Options{}), part: c.part, before: c.before, keys: c.keys}
			newest := time.Now().UTC().Truncate(5 * time.Minute)
			for seq := int64(1); seq <= 2000; seq++ {
				r := recordtest.Grant(seq, 0, "a")
				by := newest.Add(-5 * time.Minute * time.Duration(2000-seq)).Sub(recordtest.Noon)
				for _, at := range []*time.Time{&r.SlotStart, &r.SlotEnd, &r.WindowStart, &r.WindowEnd, &r.FixedAt, &r.ReadAt} {
					*at = at.Add(by)
				}
				r.Claim, r.Token = fmt.Sprint("claim ", seq), r.WindowStart.UnixMilli()
				if err := l.Append(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			r, err := readOne(t.Context(), charges.New(l), "export", Options{Timeout: time.Minute}, Output{})
			if err != nil || len(r.Findings) > 0 || r.Last != 2000 {
				t.Errorf("readOne() = %+v, %v, want no finding", r, err)
			}
		})
	}
}
