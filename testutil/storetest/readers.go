package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// readerCases are about handles without the right to write.
var readerCases = []testCase{
	{"a reader reads all that others read", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 5)
		add(t, b, Grant("mail", 1))
		bad := Fields(Grant("job", 6))
		delete(bad, "claim")
		b.Plant(t, "job", 6, bad)
		r := b.reader(t)
		got, want := tail(t, r, "job", 4), tail(t, b, "job", 4)
		if !slices.Equal(got, want) {
			t.Errorf("Tail(job, 4) by a reader = %+v, want %+v", got, want)
		}
		wantRecord(t, "Get by a reader", get(t, r, "job", 2), Grant("job", 2))
		absent(t, r, "job", 9)
		if types, err := r.WorkerTypes(within(t)); err != nil || !slices.Equal(types, []string{"job", "mail"}) {
			t.Errorf("WorkerTypes() by a reader = %q, %v, want job and mail", types, err)
		}
		before := now(t, b)
		s := now(t, r)
		wantStamp(t, "Now() by a reader", s)
		if after := now(t, b); s.Time.Before(before.Time.Add(-before.Granularity-s.MaxAge-s.Skew)) || s.Time.After(after.Time.Add(after.Granularity+s.MaxAge+s.Skew)) {
			t.Errorf("Now() by a reader = %+v, want it in %v … %v", s, before.Time, after.Time)
		}
	}},
	{"a reader sees what is appended and trimmed while it is open", func(t *testing.T, b *bench) {
		add(t, b, Grant("job", 1))
		r := b.reader(t)
		for seq := int64(2); seq <= 9; seq++ {
			wantSeqs(t, "Tail by a reader", tail(t, r, "job", 1), seq-1)
			add(t, b, Grant("job", seq))
		}
		wantTrim(t, b, "job", 9, 8)
		wantSeqs(t, "Tail by a reader after a trim", tail(t, r, "job", 9), 9)
	}},
	{"a reader is denied to append, to trim and to create, and changes nothing", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 3)
		r := b.reader(t)
		for _, seq := range []int64{2, 4} {
			if err := r.Append(within(t), claimed("job", seq, "reader")); !errors.Is(err, store.ErrDenied) && !(seq == 2 && errors.Is(err, store.ErrConflict)) {
				t.Errorf("Append(job, %d) by a reader = %v, want ErrDenied", seq, err)
			}
		}
		if n, err := r.Trim(within(t), "job", store.MaxSeq); n != 0 || !errors.Is(err, store.ErrDenied) {
			t.Errorf("Trim() by a reader = %d, %v, want 0 and ErrDenied", n, err)
		}
		if c, ok := r.(store.RightsChecker); ok {
			if err := c.CheckRights(within(t)); err != nil && !errors.Is(err, store.ErrDenied) {
				t.Errorf("CheckRights() by a reader = %v, want nil or ErrDenied", err)
			}
		}
		// Nothing is missing, so there may be nothing that it is denied.
		if err := r.Init(within(t)); err != nil && !errors.Is(err, store.ErrDenied) {
			t.Errorf("Init() by a reader = %v, want nil or ErrDenied", err)
		}
		for name, l := range map[string]store.Ledger{"a reader": r, "another": b} {
			got := tail(t, l, "job", 9)
			wantSeqs(t, "Tail afterwards by "+name, got, 3, 2, 1)
			for _, g := range got {
				wantRecord(t, "a record afterwards by "+name, g, Grant("job", g.Seq))
			}
		}
		add(t, b, Grant("job", 4))
	}},
}

// reader returns a handle without the right to write.
func (b *bench) reader(t *testing.T) store.Ledger {
	t.Helper()
	if b.OpenReading == nil {
		t.Skip("the harness has no OpenReading: its store knows no handles without the right to write")
	}
	l := b.OpenReading(t)
	t.Cleanup(func() { _ = l.Close(t.Context()) })
	return l
}
