package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// secondary is a copy of the ledger that was planted, 42 s old at 12:42.
type secondary struct {
	store.Ledger

	err error
}

func (s secondary) AsOf(context.Context) (string, time.Time, error) {
	return "db2:27017, a secondary", recordtest.Noon.Add(42*time.Minute - 42*time.Second), s.err
}

func TestACopyIsLabelledWithItsServerAndItsAge(t *testing.T) {
	l := secondary{Ledger: planted()}
	got, err := shown(t, l, Options{Last: 3, Timeout: time.Minute})
	const want = "\na copy, 42s old: db2:27017, a secondary, has all up to 2026-03-02T12:41:18.000Z; later records may be missing\n\n"
	if err != nil || !strings.Contains(got, want) {
		t.Errorf("inspect slots of a copy = %q, %v, want %q in it", got, err, want)
	}
	if s := decoded(t, l, 3); s.Copy == nil || *s.Copy != (Copy{"db2:27017, a secondary", "2026-03-02T12:41:18.000Z", 42_000}) {
		t.Errorf("inspect slots of a copy as JSON has %+v", s.Copy)
	}
	got, err = shown(t, planted(), Options{Last: 3, JSON: true, Timeout: time.Minute})
	if err != nil || strings.Contains(got, `"copy"`) || !json.Valid([]byte(got)) {
		t.Errorf("inspect slots of a ledger = %s, %v, want nothing of a copy", got, err)
	}
	down := errors.New("no answer")
	if _, err := shown(t, secondary{planted(), down}, Options{Last: 3, Timeout: time.Minute}); !errors.Is(err, down) {
		t.Errorf("inspect slots of a copy of unknown age = %v, want %v", err, down)
	}
}

func TestACopyAdvisesNoOverride(t *testing.T) {
	l := planted()
	long := recordtest.Grant(10, 10, "worker-z")
	long.SlotEnd = long.SlotStart.Add(365 * 24 * time.Hour)
	long.WindowEnd = long.SlotEnd
	l.Put(long)
	if s := decoded(t, l, 3); s.Try == "" {
		t.Fatal("inspect slots advises nothing about a year's window")
	}
	if s := decoded(t, secondary{Ledger: l}, 3); s.Try != "" {
		t.Errorf("inspect slots of a copy advises %q, by what may be old", s.Try)
	}
}

func TestAStoreWithoutSecondariesRefusesToBeReadAsACopy(t *testing.T) {
	_, err := openCopy(t.Context(), storeuri.Target{Scheme: storeuri.SQLite}, planted())
	e, ok := errors.AsType[*exit.Error](err)
	if !ok || e.Code != exit.Usage || err.Error() != "--stale: the store of sqlite has no secondaries" {
		t.Errorf("openCopy() of a SQLite file = %v, want a usage error of one line", err)
	}
}
