package storetest

import (
	"errors"
	"slices"
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
