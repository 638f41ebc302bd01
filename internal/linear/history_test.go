package linear_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestWhatWasPlantedExplainsReads(t *testing.T) {
	inner := memory.New(memory.Options{})
	poison := store.Record{WorkerType: "job", Seq: 2, Defect: "no envelope"}
	read := func(h *linear.History) error {
		l := h.Client("a", inner)
		if records, _, err := l.Tail(t.Context(), "job", 5); err != nil || len(records) != 2 {
			t.Fatalf("Tail() = %v, %v, want 2 records", records, err)
		}
		_, err := h.Check(0)
		return err
	}
	h := linear.NewHistory()
	h.Plant(storetest.Grant("job", 1), func() { inner.Put(storetest.Grant("job", 1)) })
	h.Plant(poison, func() { inner.Put(poison) })
	if err := read(h); err != nil {
		t.Errorf("Check() with what was planted = %v, want nil", err)
	}
	h = linear.NewHistory()
	h.Plant(storetest.Grant("job", 1), nil)
	h.Plant(poison, nil)
	if err := read(h); err != nil {
		t.Errorf("Check() with what had been planted = %v, want nil", err)
	}
	if err := read(linear.NewHistory()); !errors.Is(err, linear.ErrIllegal) {
		t.Errorf("Check() without what was planted = %v, want ErrIllegal", err)
	}
}

func TestCallsThatAreUnderWayAreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := linear.NewHistory()
		inner := memory.New(memory.Options{})
		slow := h.Client("slow", faultstore.New(inner, faultstore.Options{
			Plan: func(faultstore.Call) faultstore.Fault { return faultstore.Fault{After: time.Hour} },
		}))
		go func() { _ = slow.Append(t.Context(), storetest.Grant("job", 1)) }()
		go func() { _, _ = slow.Get(t.Context(), "job", 1) }()
		synctest.Wait()
		if _, err := h.Client("a", inner).Get(t.Context(), "job", 1); err != nil {
			t.Fatal(err)
		}
		result, err := h.Check(time.Minute)
		if err != nil || result.Operations != 2 || result.Searched != 2 || result.Unknown != 1 || h.Len() != 3 {
			t.Errorf("Check() while calls are under way = %+v, %v, want 2 operations, both searched, 1 unknown, nil", result, err)
		}
		time.Sleep(2 * time.Hour)
		result, err = h.Check(time.Minute)
		if err != nil || result.Operations != 3 || result.Searched != 3 || result.Unknown != 0 {
			t.Errorf("Check() after they ended = %+v, %v, want 3 operations, all searched, nil", result, err)
		}
	})
}

func TestRefusedCallsDontCount(t *testing.T) {
	h := linear.NewHistory()
	l := h.Client("a", memory.New(memory.Options{}))
	if err := l.Append(t.Context(), store.Record{WorkerType: "job", Seq: 1}); !errors.Is(err, store.ErrInvalid) {
		t.Fatalf("Append() of nonsense = %v, want ErrInvalid", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Get(ended, "job", 1); err == nil {
		t.Fatal("Get() after the end of its context = nil, want an error")
	}
	if result, err := h.Check(0); err != nil || result.Operations != 0 {
		t.Errorf("Check() = %+v, %v, want no operations", result, err)
	}
}

func TestACallThatCantBeWrittenDownIsntMade(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close()
	inner := memory.New(memory.Options{})
	j := linear.NewHistoryFile(w, func() int64 { return 1 })
	l := j.Client("a", inner)
	if err := l.Append(t.Context(), storetest.Grant("job", 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Append() = %v, want the error of the pipe", err)
	}
	if _, err := inner.Get(t.Context(), "job", 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get() of the inner ledger = %v, want ErrNotFound", err)
	}
	if err := j.Err(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Err() = %v, want that of the pipe", err)
	}
}

func TestTimesOfACounterAndOfHistoryFilesDontMix(t *testing.T) {
	var text strings.Builder
	now := int64(0)
	j := linear.NewHistoryFile(&text, func() int64 { now++; return now })
	h := linear.NewHistory()
	for _, l := range []store.Ledger{j.Client("a", memory.New(memory.Options{})), h.Client("b", memory.New(memory.Options{}))} {
		must(t, l.Append(t.Context(), storetest.Grant("job", 1)))
	}
	must(t, h.Load(strings.NewReader(text.String())))
	if _, err := h.Check(0); err == nil || errors.Is(err, linear.ErrIllegal) {
		t.Errorf("Check() = %v, want it to say that the times can't be compared", err)
	}
	other := linear.NewHistory()
	must(t, other.Load(strings.NewReader(text.String())))
	if result, err := other.Check(0); err != nil || result.Operations != 1 {
		t.Errorf("Check() of the history file alone = %+v, %v, want 1 operation, nil", result, err)
	}
}
