package inspect

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// fresh is as long as the page wants it.
const fresh = 700 * time.Millisecond

// reads counts the records that are read of a ledger.
type reads struct {
	*memory.Ledger

	tails, records int
}

func (r *reads) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	found, stamp, err := r.Ledger.Tail(ctx, workerType, limit)
	r.tails, r.records = r.tails+1, r.records+len(found)
	return found, stamp, err
}

func TestACacheReadsWhatWasAppendedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &reads{Ledger: memory.New(memory.Options{})}
		for seq := range int64(100) {
			m.Put(recordtest.Grant(seq+1, int(seq), "anna"))
		}
		l := NewCache(m, fresh, time.Second/32)
		same := func(limit int) {
			t.Helper()
			got, _, err := l.Tail(t.Context(), "export", limit)
			want, _, _ := m.Ledger.Tail(t.Context(), "export", limit)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("Tail(%d) has %d records, %v, want the %d of the ledger", limit, len(got), err, len(want))
			}
		}
		same(60)
		same(40)
		if m.tails != 1 || m.records != 60 {
			t.Errorf("%d reads of %d records for two looks at a time, want 1 of 60", m.tails, m.records)
		}
		time.Sleep(fresh)
		m.Put(recordtest.Grant(101, 101, "bert"))
		same(60)
		if m.tails != 2 || m.records != 60+probe {
			t.Errorf("%d reads of %d records after one more, want 2 of %d", m.tails, m.records, 60+probe)
		}
		time.Sleep(fresh)
		for seq := range int64(30) {
			m.Put(recordtest.Grant(102+seq, 102+int(seq), "carl"))
		}
		same(60)
		same(500)
		time.Sleep(fresh)
		same(500)
		m.Put(recordtest.Grant(132, 140, "dora"))
		l.Refresh("export", 0)
		same(500)
	})
}

func TestManyTypesAreReadLessOftenAndAtTheirMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &reads{Ledger: memory.New(memory.Options{})}
		const n = 640 // each may rest for 20 s
		names := make([]string, n)
		start := time.Now().UTC().Truncate(time.Minute)
		for i := range names {
			names[i] = fmt.Sprintf("t%d", i)
			r := recordtest.Grant(1, 0, "anna")
			r.WorkerType, r.Schedule = names[i], "every 1m"
			r.SlotStart, r.SlotEnd, r.WindowStart, r.WindowEnd = start, start.Add(time.Minute), start, start.Add(time.Minute)
			m.Put(r)
		}
		l := NewCache(m, fresh, time.Second/32)
		all := func() {
			for _, name := range names {
				if _, _, err := l.Tail(t.Context(), name, 40); err != nil {
					t.Fatal(err)
				}
			}
		}
		all()
		began := m.tails
		for range 30 {
			time.Sleep(time.Second)
			all()
		}
		if per := (m.tails - began) / 30; per > 64 {
			t.Errorf("%d reads a second of %d types, want about %d", per, n, 32)
		}
		if time.Until(start.Add(time.Minute)) > 0 {
			time.Sleep(time.Until(start.Add(time.Minute)) + 1)
		}
		began = m.tails
		all()
		if m.tails-began != n {
			t.Errorf("%d reads when a slot has ended, want all %d", m.tails-began, n)
		}
	})
}

func TestRecordsThatWereTrimmedGoFromACache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Options{})
		for seq := range int64(300) {
			m.Put(recordtest.Grant(seq+1, int(seq), "anna"))
		}
		l := NewCache(m, fresh, time.Second/32)
		if _, _, err := l.Tail(t.Context(), "export", 500); err != nil {
			t.Fatal(err)
		}
		n, err := m.Trim(t.Context(), "export", 201)
		if err != nil || n == 0 {
			t.Fatalf("Trim() = %d, %v, want records to go", n, err)
		}
		time.Sleep(10 * time.Minute)
		got, _, _ := l.Tail(t.Context(), "export", 500)
		want, _, _ := m.Tail(t.Context(), "export", 500)
		if len(got) != len(want) {
			t.Errorf("10 minutes after a trim, %d records are shown, want %d", len(got), len(want))
		}
	})
}

// What --watch shows is never older than its look, and each look reads few records.
func TestWithoutAnAgeEachLookFindsWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &reads{Ledger: memory.New(memory.Options{})}
		for seq := range int64(100) {
			m.Put(recordtest.Grant(seq+1, int(seq), "anna"))
		}
		l := NewCache(m, 0, 0)
		for seq := range int64(5) {
			got, _, err := l.Tail(t.Context(), "export", 60)
			if want := 100 + seq; err != nil || len(got) != 60 || got[0].Seq != want {
				t.Fatalf("Tail() = %d records, %v, want 60 up to %d", len(got), err, want)
			}
			m.Put(recordtest.Grant(101+seq, 101+int(seq), "bert"))
		}
		if m.tails != 5 || m.records != 60+4*probe {
			t.Errorf("%d reads of %d records, want 5 of %d", m.tails, m.records, 60+4*probe)
		}
	})
}

// Workers pass over what stands above a free key, and go on at that key: what they append comes below what is kept.
func TestACacheReadsWhatWasAppendedBelowAFreeKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Options{})
		put := func(seq int64) { m.Put(recordtest.Grant(seq, int(seq), "anna")) }
		for seq := range int64(99) {
			put(seq + 1)
		}
		put(1000)
		l := NewCache(m, 0, 0)
		for seq := int64(100); seq < 103; seq++ {
			if _, _, err := l.Tail(t.Context(), "export", 60); err != nil {
				t.Fatal(err)
			}
			put(seq)
			got, _, err := l.Tail(t.Context(), "export", 60)
			want, _, _ := m.Tail(t.Context(), "export", 60)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("Tail() = the records %d, %d, …, %v, want %d, %d", got[0].Seq, got[1].Seq, err, want[0].Seq, want[1].Seq)
			}
		}
	})
}

// A record that can't be reached comes in addition to as many as were asked for.
func TestACacheHasWhatCannotBeReachedBesideTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &reads{Ledger: memory.New(memory.Options{})}
		for seq := range int64(100) {
			m.Put(recordtest.Grant(seq+1, int(seq), "anna"))
		}
		m.Put(recordtest.Grant(store.MaxSeq+1, 200, "zoe"))
		l := NewCache(m, 0, 0)
		for _, limit := range []int{60, 1, 60, 60, 60, 101, 200} {
			got, _, err := l.Tail(t.Context(), "export", limit)
			last := m.records
			want, _, _ := m.Ledger.Tail(t.Context(), "export", limit)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("Tail(%d) has %d records, %v, want the %d of the ledger", limit, len(got), err, len(want))
			}
			if m.records = 0; last > max(61, limit+1) {
				t.Errorf("Tail(%d) read %d records", limit, last)
			}
		}
	})
}
