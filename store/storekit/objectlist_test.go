package storekit

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// shelved is a ledger on a shelf, with records of some Seqs.
func shelved(t *testing.T, seqs ...int64) (*ObjectLedger, *shelf) {
	t.Helper()
	s := newShelf()
	l := OnObjects(ObjectsOptions{Objects: s, Runner: NewRunner(RunnerOptions{Store: "shelf"})})
	appended(t, l, seqs...)
	return l, s
}

func appended(t *testing.T, l *ObjectLedger, seqs ...int64) {
	t.Helper()
	for _, seq := range seqs {
		if err := l.Append(t.Context(), storetest.Grant("job", seq)); err != nil {
			t.Fatalf("Append(job, %d) = %v, want nil", seq, err)
		}
	}
}

func seqsOf(records []store.Record) (seqs []int64) {
	for _, r := range records {
		seqs = append(seqs, r.Seq)
	}
	return seqs
}

func TestATailLacksNothingThatAListMissedBelowANewRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		stored, soon []int64
		limit        int
		want         []int64
		lists        int
	}{
		{"nothing is appended", []int64{1, 2, 3}, nil, 3, []int64{3, 2, 1}, 1},
		{"one is", []int64{1, 2, 3}, []int64{4}, 3, []int64{4, 3, 2}, 1},
		{"two are", []int64{1, 2, 3}, []int64{4, 5}, 3, []int64{5, 4, 3}, 2},
		{"more than wanted are", []int64{1, 2, 3}, []int64{4, 5, 6, 7}, 3, []int64{7, 6, 5}, 2},
		{"the list isn't full", []int64{1, 2, 3}, []int64{4, 5}, 9, []int64{5, 4, 3, 2, 1}, 2},
		{"the first are", nil, []int64{1, 2, 3}, 9, []int64{3, 2, 1}, 2},
		{"the oldest were trimmed", []int64{7, 8}, nil, 9, []int64{8, 7}, 2},
		{"others are missing, too", []int64{1, 2, 9}, []int64{10, 11}, 9, []int64{11, 10, 9, 2, 1}, 3},
		{"the newest alone is wanted", []int64{1, 2, 3}, []int64{4, 5}, 1, []int64{5}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, s := shelved(t, c.stored...)
			s.during = func(list int) {
				if list == 1 {
					appended(t, l, c.soon...)
				}
			}
			records, stamp, err := l.Tail(t.Context(), "job", c.limit)
			if got := seqsOf(records); err != nil || !slices.Equal(got, c.want) || stamp.IsZero() {
				t.Errorf("Tail(job, %d) = Seqs %d, stamp %v, %v, want %d and a stamp", c.limit, got, stamp, err, c.want)
			}
			if s.lists != c.lists {
				t.Errorf("Tail(job, %d) made %d lists, want %d", c.limit, s.lists, c.lists)
			}
		})
	}
}

// What fills a gap below the newest record may come after one above it.
func TestATailIsNoMixtureOfTwoMoments(t *testing.T) {
	t.Parallel()
	for when := 1; when <= 2; when++ {
		l, s := shelved(t, 1, 2, 4)
		s.during = func(list int) {
			if list == when {
				appended(t, l, 5, 3)
			}
		}
		records, _, err := l.Tail(t.Context(), "job", 9)
		if got := seqsOf(records); err != nil || !slices.Equal(got, []int64{5, 4, 3, 2, 1}) {
			t.Errorf("Tail() = Seqs %d, %v, want all, as 3 came after 5, during list %d", got, err, when)
		}
	}
}

// A record that was the newest in the first list may be gone at the second, with all below it.
func TestATailHasTheNewestRecordThoughWhatItListedFirstIsTrimmed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		stored []int64
		during int
	}{
		{"a list of one, before the next", []int64{5}, 2},
		{"a list of several, before the next", []int64{4, 5}, 2},
		{"a list with a gap, before the next", []int64{1, 2, 3, 5}, 2},
		{"a list of one, while it is made", []int64{5}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, s := shelved(t, c.stored...)
			s.before = func(list int) {
				if list == c.during {
					appended(t, l, 6)
					for _, seq := range c.stored {
						if _, err := s.Delete(t.Context(), RecordName("job", seq)); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			records, _, err := l.Tail(t.Context(), "job", 9)
			if got := seqsOf(records); err != nil || !slices.Equal(got, []int64{6}) {
				t.Errorf("Tail(job, 9) = Seqs %d, %v, want 6, which was stored before the others were trimmed", got, err)
			}
		})
	}
}

func TestAPageHasNoGapWhereAListMissedARecord(t *testing.T) {
	t.Parallel()
	l, s := shelved(t, 3, 4)
	s.during = func(list int) {
		if list == 2 {
			appended(t, l, 5, 6)
		}
	}
	var got []int64
	for after := int64(0); ; after = got[len(got)-1] {
		records, err := l.Page(t.Context(), "job", after, 9)
		if err != nil {
			t.Fatalf("Page(job, %d, 9) = %v, want nil", after, err)
		}
		if len(records) == 0 {
			break
		}
		got = append(got, seqsOf(records)...)
	}
	if want := []int64{3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("the pages = Seqs %d, want %d", got, want)
	}
}

// The ledger of a service on which a read takes 10 ms, and where each list of 1,000 names would.
func TestThePagesOfALongLedgerAreReadSoonAndWithoutAListOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first, last = 1001, 4000
		var seqs []int64
		for seq := int64(first); seq <= last; seq++ {
			seqs = append(seqs, seq)
		}
		l, s := shelved(t, seqs...)
		s.takes = 10 * time.Millisecond
		began := time.Now()
		var got []int64
		for after := int64(0); ; after = got[len(got)-1] {
			records, err := l.Page(t.Context(), "job", after, store.MaxPage)
			if err != nil {
				t.Fatalf("Page(job, %d) = %v, want nil", after, err)
			}
			if len(records) == 0 {
				break
			}
			got = append(got, seqsOf(records)...)
		}
		if !slices.Equal(got, seqs) {
			t.Errorf("the pages have %d records, want %d, from %d to %d", len(got), len(seqs), first, last)
		}
		if listed := s.listed.Load(); listed > 10 {
			t.Errorf("%d names were listed, want hardly more than the newest for each page", listed)
		}
		if took := time.Since(began); took > 1300*time.Millisecond {
			t.Errorf("%d records took %v, want 32 read at a time", len(got), took)
		}
	})
}

func TestAPageGoesOnAboveGaps(t *testing.T) {
	t.Parallel()
	seqs := []int64{3, 4, 5, 9, 10, 50, 51, 52, 53, 1 << 40, 1<<40 + 1, store.MaxSeq}
	l, _ := shelved(t, seqs...)
	for limit := 1; limit <= len(seqs)+1; limit++ {
		for i := range seqs {
			records, err := l.Page(t.Context(), "job", seqs[i]-1, limit)
			if want := seqs[i:min(i+limit, len(seqs))]; err != nil || !slices.Equal(seqsOf(records), want) {
				t.Errorf("Page(job, %d, %d) = Seqs %d, %v, want %d", seqs[i]-1, limit, seqsOf(records), err, want)
			}
		}
	}
}

// filed is a shelf that knows its folders, and whose lists take 100 ms.
type filed struct {
	*shelf

	folders []string
}

func (f filed) Folders(context.Context, string) ([]string, error) {
	return slices.Clone(f.folders), nil
}

func (f filed) List(ctx context.Context, prefix, after string, hint int, visit func(o Object) bool) error {
	time.Sleep(100 * time.Millisecond)
	return f.shelf.List(ctx, prefix, after, hint, visit)
}

// Whether there are records of a worker type takes a list, of which a service with many of them is asked for several at a
// time.
func TestManyWorkerTypesAreLookedAtSeveralAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := filed{newShelf(), []string{"no worker type", "empty"}}
		var want []string
		l := OnObjects(ObjectsOptions{Objects: f, Runner: NewRunner(RunnerOptions{Store: "shelf"})})
		for i := range 4*AtATime - 1 {
			name := fmt.Sprintf("job%02d", i)
			want, f.folders = append(want, name), append(f.folders, name)
			if err := l.Append(t.Context(), storetest.Grant(name, 1)); err != nil {
				t.Fatalf("Append(%s, 1) = %v, want nil", name, err)
			}
		}
		l.o.Objects = f
		began := time.Now()
		got, err := l.WorkerTypes(t.Context())
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("WorkerTypes() = %q, %v, want %q", got, err, want)
		}
		if took := time.Since(began); took > 400*time.Millisecond {
			t.Errorf("WorkerTypes() took %v, want %d lists at a time", took, AtATime)
		}
	})
}

// blind is a shelf whose first list passes the names before the only record is replaced, and so shows none.
type blind struct {
	*shelf

	lists int
}

func (b *blind) List(ctx context.Context, prefix, after string, hint int, visit func(o Object) bool) error {
	if b.lists++; b.lists == 1 {
		b.stamp(ctx)
		return nil
	}
	return b.shelf.List(ctx, prefix, after, hint, visit)
}

// Who takes a ledger for empty appends its first record.
func TestATailTakesNoLedgerForEmptyByOneList(t *testing.T) {
	t.Parallel()
	l, s := shelved(t, 5)
	l.o.Objects = &blind{shelf: s}
	records, _, err := l.Tail(t.Context(), "job", 1)
	if got := seqsOf(records); err != nil || !slices.Equal(got, []int64{5}) {
		t.Errorf("Tail() = Seqs %d, %v, want the record, as the second list has it", got, err)
	}
	records, _, err = l.Tail(t.Context(), "another", 1)
	if err != nil || len(records) != 0 {
		t.Errorf("Tail() of an empty ledger = %v, %v, want nothing", records, err)
	}
}
