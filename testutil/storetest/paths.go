package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// pathCases are about handles that reach the data of others by another path. A store that keeps
// part of it by the path, as a log, would grant a slot twice.
var pathCases = []testCase{
	{"of two paths at most one stores a key, whichever comes first", func(t *testing.T, b *bench) {
		add(t, b, Grant("job", 1))
		other := b.elsewhere(t)
		for i, both := range [][2]store.Ledger{{b, other}, {other, b}} {
			seq := int64(2 + i)
			first, second := both[0].Append(within(t), claimed("job", seq, "first")), both[1].Append(within(t), claimed("job", seq, "second"))
			if first == nil && second == nil {
				t.Errorf("both paths stored %s", store.Key("job", seq))
			}
		}
	}},
	{"of two paths that are used at once at most one stores a key", func(t *testing.T, b *bench) {
		add(t, b, Grant("job", 1))
		both := []store.Ledger{b, b.elsewhere(t)}
		for seq := int64(2); seq < 50; seq++ {
			var wg sync.WaitGroup
			errs := make([]error, len(both))
			ctx := within(t)
			for i, l := range both {
				wg.Go(func() { errs[i] = l.Append(ctx, claimed("job", seq, fmt.Sprint("path ", i))) })
			}
			if wg.Wait(); errs[0] == nil && errs[1] == nil {
				t.Fatalf("both paths stored %s", store.Key("job", seq))
			}
		}
	}},
	{"what is stored by one path is there by the other, unless that is refused", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 3)
		other := b.elsewhere(t)
		wantThere(t, "by another path", other, Grant("job", 3))
		for i, both := range [][2]store.Ledger{{b, other}, {other, b}} {
			seq := int64(4 + i)
			switch err := both[0].Append(within(t), Grant("job", seq)); {
			case err == nil:
				wantThere(t, "by the path that didn't store it", both[1], Grant("job", seq))
				wantThere(t, "by the path that stored it", both[0], Grant("job", seq))
			case !errors.Is(err, store.ErrRefused) && !errors.Is(err, store.ErrConflict):
				t.Errorf("Append(%s) = %v, want it to be stored, or ErrRefused", store.Key("job", seq), err)
			}
		}
	}},
}

// wantThere demands that a handle reads a record, or is refused.
func wantThere(t *testing.T, what string, l store.Ledger, want store.Record) {
	t.Helper()
	got, err := l.Get(within(t), want.WorkerType, want.Seq)
	switch {
	case errors.Is(err, store.ErrRefused):
	case err != nil:
		t.Errorf("Get %s = %v, want the record, or ErrRefused", what, err)
	default:
		wantRecord(t, "Get "+what, got, want)
	}
}

// elsewhere returns a handle that reaches the data by another path. That a store refuses it is
// as good as all that it could do.
func (b *bench) elsewhere(t *testing.T) store.Ledger {
	t.Helper()
	if b.OpenElsewhere == nil {
		t.Skip("the harness has no OpenElsewhere: its data has one path")
	}
	l, err := b.OpenElsewhere(t)
	switch {
	case errors.Is(err, store.ErrRefused):
		return refused{b.Ledger, err}
	case err != nil:
		t.Fatalf("OpenElsewhere() = %v, want a handle, or ErrRefused", err)
	}
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	return l
}

// refused is a handle that a store refused to open.
type refused struct {
	store.Ledger
	err error
}

func (r refused) Append(context.Context, store.Record) error { return r.err }

func (r refused) Get(context.Context, string, int64) (store.Record, error) {
	return store.Record{}, r.err
}
