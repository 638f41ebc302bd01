package charges

import (
	"context"
	"errors"
	"testing"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// failing is a ledger that charges for a read, and then fails. Its sums need rounding.
type failing struct{ store.Ledger }

func (failing) Tail(ctx context.Context, _ string, _ int) ([]store.Record, store.Stamp, error) {
	store.Charge(ctx, 2.1)
	store.Charge(ctx, 0.1)
	return nil, store.Stamp{}, errors.New("no reply")
}

func TestAReadThatFailedIsChargedToo(t *testing.T) {
	l := New(failing{memory.New(memory.Options{})})
	for range 3 {
		if _, _, err := l.Tail(t.Context(), "export", 1); err == nil {
			t.Fatal("Tail() = nil, want an error")
		}
	}
	if got := Round(l.Charges().Total()); got != 6.6 {
		t.Errorf("Charges() = %v, want 6.6", got)
	}
}

// listing is a ledger that charges for its roster.
type listing struct{ *memory.Ledger }

func (l listing) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	store.Charge(ctx, 1.5)
	return l.Ledger.Presences(ctx, workerType)
}

func TestTheRosterIsChargedAndMayBeMissing(t *testing.T) {
	m := memory.New(memory.Options{})
	if err := m.Attend(t.Context(), []store.Presence{{WorkerType: "export", ID: "a", InstanceID: "w", Phase: store.PhaseHolder}}); err != nil {
		t.Fatal(err)
	}
	l := New(listing{m})
	if got, err := l.Presences(t.Context(), "export"); err != nil || len(got) != 1 || l.Charges()["presences"] != 1.5 {
		t.Errorf("Presences() = %+v, %v, charged %v, want one for 1.5", got, err, l.Charges())
	}
	l = New(failing{m})
	if _, err := l.Presences(t.Context(), "export"); !errors.Is(err, errors.ErrUnsupported) || len(l.Charges()) != 0 {
		t.Errorf("Presences() without a roster = %v, charged %v, want errors.ErrUnsupported for nothing", err, l.Charges())
	}
}

// paging is a ledger that charges for a page and a get.
type paging struct{ *memory.Ledger }

func (l paging) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	store.Charge(ctx, 3.5)
	return l.Ledger.Page(ctx, workerType, after, limit)
}

func (l paging) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	store.Charge(ctx, 1)
	return l.Ledger.Get(ctx, workerType, seq)
}

func TestPagesAreChargedAndMadeOfGetsIfThereAreNone(t *testing.T) {
	l := New(paging{memory.New(memory.Options{})})
	_, err := l.Page(t.Context(), "export", 0, 9)
	_, absent := l.Get(t.Context(), "export", 1)
	if err != nil || !errors.Is(absent, store.ErrNotFound) || l.Charges()["page"] != 3.5 || l.Charges()["get"] != 1 {
		t.Errorf("Page() = %v, Get() = %v, charged %v, want 3.5 for the page and 1 for the get", err, absent, l.Charges())
	}
	m := memory.New(memory.Options{})
	m.Put(recordtest.Grant(2, 0, "a"))
	m.Put(recordtest.Grant(4, 1, "a"))
	page, err := New(struct{ store.Ledger }{m}).Page(t.Context(), "export", 1, 9)
	if err != nil || len(page) != 2 || page[0].Seq != 2 || page[1].Seq != 4 {
		t.Errorf("Page() of a ledger without pages = %v, %v, want what is there by its keys", page, err)
	}
}
