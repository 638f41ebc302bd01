package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/slotlease/slotlease/store"
)

// outsideCases are about documents of another program under names that no worker type may have.
var outsideCases = []testCase{
	{"records under hostile names are listed as they are or not at all, and hide no others", func(t *testing.T, b *bench) {
		planted := b.plantHostile(t)
		addRange(t, b, "job", 1, 3)
		addRange(t, b, "j", 1, 3)
		got, err := b.WorkerTypes(within(t))
		if err != nil {
			t.Fatalf("WorkerTypes() beside hostile names = %.300q, %v, want the others", got, err)
		}
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("WorkerTypes() beside hostile names = %.300q, want each once, in byte order", got)
		}
		valid := slices.DeleteFunc(slices.Clone(got), func(name string) bool { return slices.Contains(planted, name) })
		if !slices.Equal(valid, []string{"j", "job"}) {
			t.Errorf("WorkerTypes() but for the hostile names = %.300q, want j and job: all that have records, and none that has not", valid)
		}
	}},
	{"a record under a hostile name is never one to obey", func(t *testing.T, b *bench) {
		for _, name := range b.plantHostile(t) {
			r, err := b.Get(within(t), name, 1)
			switch refused := errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrNotFound); {
			case err != nil && !refused:
				t.Errorf("Get(%.60q, 1) = %v, want the record, ErrInvalid or ErrNotFound", name, err)
			case err == nil && r.CheckEnvelope() == nil:
				t.Errorf("Get(%.60q, 1) = %+v, want one whose CheckEnvelope fails", name, r)
			}
			records, _, err := b.Tail(within(t), name, 9)
			if err != nil && !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Tail(%.60q, 9) = %v, want no error but ErrInvalid", name, err)
			}
			if i := slices.IndexFunc(records, func(r store.Record) bool { return r.CheckEnvelope() == nil }); i >= 0 {
				t.Errorf("Tail(%.60q, 9) has %+v, want none whose CheckEnvelope passes", name, records[i])
			}
		}
	}},
	{"records under hostile names take no part in the ledgers of others", func(t *testing.T, b *bench) {
		planted := b.plantHostile(t)
		// A store whose keys are texts may take a name such as "job:1" for an unreachable key of job.
		tail := func(t *testing.T, l store.Ledger, name string, limit int) []store.Record {
			t.Helper()
			return slices.DeleteFunc(tail(t, l, name, limit), func(r store.Record) bool { return r.Seq == 0 && r.Defect != "" })
		}
		for _, name := range []string{"j", "job"} {
			wantSeqs(t, "Tail of "+name+" before its first record", tail(t, b, name, 9))
			absent(t, b, name, 1)
			addRange(t, b, name, 1, 3)
			wantSeqs(t, "Tail of "+name, tail(t, b, name, 9), 3, 2, 1)
			wantRecord(t, "Get of "+name, get(t, b, name, 1), Grant(name, 1))
			wantConflict(t, b, claimed(name, 1, "second"))
			wantTrim(t, b, name, store.MaxSeq, 2)
			wantSeqs(t, "Tail of "+name+" after a trim", tail(t, b, name, 9), 3)
		}
		for _, name := range planted {
			if err := b.Append(within(t), Grant(name, 2)); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Append under %.60q, which has a record = %v, want ErrInvalid", name, err)
			}
		}
	}},
}

// plantHostile plants a grant under each hostile name that the store can express, and returns
// these names.
func (b *bench) plantHostile(t *testing.T) (planted []string) {
	t.Helper()
	for _, name := range hostileNames {
		// Keys of more bytes, or not of UTF-8, are beyond many stores.
		if len(name) > 200 || !utf8.ValidString(name) {
			continue
		}
		b.part(t, "plant "+name, func(t *testing.T) {
			b.Plant(t, name, 1, Fields(Grant(name, 1)))
			planted = append(planted, name)
		})
	}
	if len(planted) == 0 {
		t.Fatal("the harness can plant none of the hostile names")
	}
	return planted
}

// constraintCases are about constraints that others give to a store's table or collection. A
// worker would lose each slot by one, or hold slots that aren't recorded, and nothing would
// show why.
var constraintCases = []testCase{
	constrained("a foreign unique index is no conflict: an append by an open handle names it", "planted_unique", (*bench).wantNamed),
	constrained("a foreign unique index is refused by the first append of a handle", "planted_unique", (*bench).wantRefused),
	constrained("a trigger that drops records is an error of an append by an open handle, which names it", "planted_trigger", (*bench).wantNamed),
	constrained("a trigger that drops records is refused by the first append of a handle", "planted_trigger", (*bench).wantRefused),
}

// constrained is a case with a constraint, planted below the handles that the bench has and one
// more, which is unused.
func constrained(name, constraint string, test func(b *bench, t *testing.T, unused store.Ledger, constraint string)) testCase {
	return testCase{name, func(t *testing.T, b *bench) {
		plant := map[string]func(testing.TB){"planted_unique": b.PlantUnique, "planted_trigger": b.PlantTrigger}[constraint]
		if plant == nil {
			t.Skip("the harness plants no such constraint")
		}
		add(t, b, Grant("job", 1))
		unused := b.handle(t)
		plant(t)
		test(b, t, unused, constraint)
		absent(t, b, "job", 2)
		wantSeqs(t, "Tail(job)", tail(t, b, "job", 9), 1)
	}}
}

// wantNamed demands that an append by a handle which has been in use fails, and that the error
// names what made it fail.
func (b *bench) wantNamed(t *testing.T, _ store.Ledger, constraint string) {
	t.Helper()
	err := b.Append(within(t), Grant("job", 2))
	if err == nil || errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), constraint) {
		t.Errorf("Append of a free key = %v, want an error that is no conflict and names %s", err, constraint)
	}
}

// wantRefused demands that a handle which was unused is refused.
func (b *bench) wantRefused(t *testing.T, unused store.Ledger, constraint string) {
	t.Helper()
	err := unused.Append(within(t), Grant("job", 2))
	if !errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), constraint) {
		t.Errorf("first Append = %v, want ErrRefused, and %s named", err, constraint)
	}
}

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
