package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/audit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

// mongoLedger is a ledger of the test's own on the MongoDB peer, with its
// --store.
func mongoLedger(t *testing.T) (store.Ledger, string) {
	t.Helper()
	u, err := url.Parse(mongopeer.URI(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = fmt.Sprintf("/leasectl_%d", time.Now().UnixNano())
	q := u.Query()
	q.Set("collection", "leases")
	u.RawQuery = q.Encode()
	l, err := mongo.Open(t.Context(), mongo.Options{URI: u.String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l, u.String()
}

func TestLifeOnMongoDB(t *testing.T) {
	t.Parallel()
	l, uri := mongoLedger(t)
	env := []string{storeuri.Variable + "=" + uri}
	if got := leasectl(t, env, "init"); got.code != exit.OK || !strings.Contains(got.stdout, "is ready, without records") {
		t.Fatalf("leasectl init = %+v", got)
	}
	var ps []*process
	names := []string{"a", "b", "c"}
	for i, name := range names {
		ps = append(ps, startRun(t, uri, name, []string{"--priority", fmt.Sprint(i), "--every", "2s"}, "sleep", "1000"))
	}
	for _, p := range ps {
		p.await("ready")
	}
	i := holding(t, ps, "ready")
	ps[i].signal(syscall.SIGKILL)
	ps[i].wait()
	died := storeTime(t, l)
	ps[i].gone()
	eventually(t, "another holds a slot", func() bool {
		for _, r := range records(t, l) {
			if r.InstanceID != names[i] && r.WindowStart.After(died) {
				return true
			}
		}
		return false
	})
	if problems := audit.Ledger(records(t, l)); len(problems) > 0 {
		t.Errorf("the ledger: %q", problems)
	}
	got := leasectl(t, env, "inspect", "slots", "--output", "json")
	var s inspect.Snapshot
	if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || got.code != exit.OK || s.WorkerType != "t" || len(s.Slots) == 0 {
		t.Errorf("leasectl inspect slots = %+v, %v", got, err)
	}
	if got := leasectl(t, env, "init"); got.code != exit.OK || !strings.Contains(got.stdout, "was there already, with the worker types t") {
		t.Errorf("leasectl init = %+v", got)
	}
	for j, p := range ps {
		if j != i {
			p.signal(syscall.SIGTERM)
			if code := p.wait(); code != exit.OK {
				t.Errorf("leasectl run of %s = %d, want 0", names[j], code)
			}
		}
	}
}
