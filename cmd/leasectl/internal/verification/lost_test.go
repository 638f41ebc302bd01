package verification

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// A ledger that was flushed has no record that says so, until a worker has claimed again.
func TestALedgerThatWasFlushedIsAWarning(t *testing.T) {
	l := memory.New(memory.Options{})
	now := time.Now()
	p := store.Presence{
		WorkerType: "export", ID: "b", InstanceID: "b", Phase: store.PhaseCandidate, Since: now, Seen: now, Next: now.Add(time.Minute),
		Missed: "nobody had it: store went back", MissedFrom: now.Truncate(time.Hour), MissedUntil: now.Truncate(time.Hour).Add(time.Hour),
	}
	other := p
	other.WorkerType, other.Missed = "report", "nobody had it: drained"
	if err := l.Attend(t.Context(), []store.Presence{p, other}); err != nil {
		t.Fatal(err)
	}
	for _, workerType := range []string{"", "export"} {
		r, err := of(t.Context(), storeuri.Target{}, l, Options{WorkerType: workerType, Timeout: time.Minute}, Output{})
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := r.write(&text, false); err != nil || strings.Count(text.String(), "records-lost") != 1 ||
			!strings.Contains(text.String(), "warning: records-lost: export has no records: the store has lost records, or may have, so that b claimed nothing.") {
			t.Errorf("verify --worker-type %q = %s, %v", workerType, text.String(), err)
		}
		if r.verdict(false) != nil || r.verdict(true) == nil {
			t.Errorf("verdict() = %v, and with strict %v, want an error with strict only", r.verdict(false), r.verdict(true))
		}
	}
	l.Put(recordtest.Grant(1, 0, "b"))
	r, err := of(t.Context(), storeuri.Target{}, l, Options{Timeout: time.Minute}, Output{})
	if err != nil || len(r.names) > 0 {
		t.Errorf("of a ledger with records, verify finds %+v, %v beside them, want nothing", r.names, err)
	}
}
