package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/audit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
)

// Three processes, of which the holder is killed, and then the server is, and
// comes back
// with its data: the slots go on, one holder each.
func TestLifeOnCosmosDB(t *testing.T) {
	peer := cosmospeer.Start(t, cosmospeer.Options{})
	t.Setenv(storeuri.KeyVariable, cosmospeer.Key())
	uri := strings.Replace(peer.URI(), "/?", "/leasectl/leases?", 1)
	l, err := cosmos.Open(t.Context(), cosmos.Options{URI: uri, Key: cosmospeer.Key()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	env := []string{storeuri.Variable + "=" + uri, storeuri.KeyVariable + "=" + cosmospeer.Key()}
	if got := leasectl(t, env, "init"); got.code != exit.OK || !strings.Contains(got.stdout, "created the ledger") {
		t.Fatalf("leasectl init = %+v", got)
	}
	var ps []*process
	names := []string{"a", "b", "c"}
	for i, name := range names {
		// By the Date header the peer's time is known within some 2.5 s.
		ps = append(ps, startRun(t, uri, name, []string{"--priority", fmt.Sprint(i), "--every", "5s"}, "sleep", "1000"))
	}
	for _, p := range ps {
		p.await("ready")
	}
	i := holding(t, ps, "ready")
	ps[i].signal(syscall.SIGKILL)
	ps[i].wait()
	died := storeTime(t, l)
	ps[i].gone()
	after := func(what string, begun func(r store.Record) bool) {
		t.Helper()
		eventually(t, what, func() bool {
			return slices.ContainsFunc(records(t, l), func(r store.Record) bool { return r.Kind == store.KindGrant && begun(r) })
		})
	}
	after("another holds a slot", func(r store.Record) bool { return r.InstanceID != names[i] && r.WindowStart.After(died) })

	// It is away for a slot's length, so for a boundary, and for the lead before it.
	peer.Kill()
	time.Sleep(5 * time.Second)
	peer.Restart()
	back := storeTime(t, l)
	after("a slot is claimed after the server's return", func(r store.Record) bool { return r.FixedAt.After(back) })
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
		if strings.Contains(p.output(), cosmospeer.Key()) {
			t.Errorf("the output of %s has the key", names[j])
		}
	}
}
