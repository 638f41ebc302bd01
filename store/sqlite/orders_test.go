package sqlite

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// Workers of an earlier version share the file while a machine is upgraded: they read the
// columns that they know, and the worker as they always did.
func TestAnEarlierVersionReadsRecordsWithOrders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Init()", l.Init(t.Context()))
	schema := asked[int](t, path, "PRAGMA user_version")
	r := storetest.Grant("job", 1)
	r.Orders = `[{"kind":"pause","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z"}]`
	must(t, "Append()", l.Append(t.Context(), r))
	var worker struct {
		Host    string `json:"host"`
		PID     int    `json:"pid"`
		Version string `json:"version"`
	}
	text := asked[string](t, path, "SELECT worker FROM WorkerLeases")
	if err := json.Unmarshal([]byte(text), &worker); err != nil || store.Worker(worker) != r.Worker {
		t.Errorf("the column worker is %s, which an earlier version reads as %+v (%v), want %+v", text, worker, err, r.Worker)
	}
	if got := asked[int](t, path, "PRAGMA user_version"); got != schema || schema != 2 {
		t.Errorf("the schema is %d, and was %d, want 2: earlier versions refuse a newer one", got, schema)
	}
}
