package app

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

// mongoLedger is a ledger of the test's own on the MongoDB peer, with its --store.
func mongoLedger(t *testing.T) (store.Ledger, string) {
	t.Helper()
	u, err := url.Parse(mongopeer.URI(t))
	must(t, err)
	u.Path = fmt.Sprintf("/leasectl_%d", time.Now().UnixNano())
	q := u.Query()
	q.Set("collection", "leases")
	u.RawQuery = q.Encode()
	l, err := mongo.Open(t.Context(), mongo.Options{URI: u.String()})
	must(t, err)
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l, u.String()
}

// sharedCosmosLedger is a ledger of the test's own on the Cosmos DB peer that all tests of this binary share, with its
// --store. With COSMOS_URI, it is on a peer of the test's own: containers in a real account would have to be paid for.
func sharedCosmosLedger(t *testing.T) (store.Ledger, string) {
	t.Helper()
	if os.Getenv("COSMOS_URI") != "" {
		return cosmosLedger(t, cosmospeer.Start(t, cosmospeer.Options{}))
	}
	return openCosmos(t, cosmospeer.URI(t))
}

// cosmosLedger is a ledger on a Cosmos DB peer of the test's own, with its --store.
func cosmosLedger(t *testing.T, peer *cosmospeer.Server) (store.Ledger, string) {
	t.Helper()
	return openCosmos(t, peer.URI())
}

// openCosmos opens a ledger in a database of the test's own, which is yet to be made.
func openCosmos(t *testing.T, account string) (store.Ledger, string) {
	t.Helper()
	uri := strings.Replace(account, "/?", fmt.Sprintf("/leasectl_%d/leases?", time.Now().UnixNano()), 1)
	l, err := cosmos.Open(t.Context(), cosmos.Options{URI: uri, Key: cosmospeer.Key()})
	must(t, err)
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l, uri
}

func TestAnotherHoldsTheSlotsWhenTheHolderIsKilled(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		l, uri := newLedger(t)
		wantAnother(t, l, uri, time.Second, "is ready, without records", nil)
	})
	t.Run("MongoDB", func(t *testing.T) {
		t.Parallel()
		l, uri := mongoLedger(t)
		wantAnother(t, l, uri, 2*time.Second, "is ready, without records", nil)
	})
}

// The server is then killed, and comes back with its data. It is away for a slot's
// length, so for a boundary, and for the lead before it.
func TestAnotherHoldsTheSlotsOnCosmosDBAlsoAfterAnOutage(t *testing.T) {
	t.Parallel()
	peer := cosmospeer.Start(t, cosmospeer.Options{})
	l, uri := cosmosLedger(t, peer)
	// By the Date header the peer's time is known within some 2.5 s.
	wantAnother(t, l, uri, 5*time.Second, " (400 RU/s)\n", func() {
		peer.Kill()
		time.Sleep(5 * time.Second)
		peer.Restart()
	})
}

// wantAnother starts three workers on a store, kills the one that holds a slot, and
// demands that others hold the next ones, also after an outage.
func wantAnother(t *testing.T, l store.Ledger, uri string, every time.Duration, initialised string, outage func()) {
	t.Helper()
	env := []string{storeuri.Variable + "=" + uri, cosmos.KeyVariable + "=" + cosmospeer.Key()}
	if got := leasectl(t, env, "init"); got.code != exit.OK || !strings.Contains(got.stdout, initialised) {
		t.Fatalf("leasectl init = %+v", got)
	}
	var ps []*process
	names := []string{"a", "b", "c"}
	for i, name := range names {
		ps = append(ps, startRun(t, uri, name, []string{"--priority", fmt.Sprint(i), "--every", every.String()}, "sleep", "1000"))
	}
	for _, p := range ps {
		p.await("ready")
	}
	i := holding(t, ps, "ready")
	ps[i].signal(syscall.SIGKILL)
	ps[i].wait()
	died := storeTime(t, l)
	ps[i].gone()
	await := func(what string, is func(r store.Record) bool) (first store.Record) {
		t.Helper()
		procs.Eventually(t, what, func() bool {
			all := records(t, l)
			n := slices.IndexFunc(all, func(r store.Record) bool { return r.Kind == store.KindGrant && is(r) })
			if n >= 0 {
				first = all[n]
			}
			return n >= 0
		})
		return first
	}
	next := await("another holds a slot", func(r store.Record) bool { return r.InstanceID != names[i] && r.WindowStart.After(died) })
	// It is the slot that begins next, or the one after that if the holder had claimed
	// the next already.
	if strings.HasPrefix(uri, "sqlite:") {
		procs.Within(t, "from the holder's death to the next holder's slot", next.WindowStart.Sub(died), 2*every)
	}
	if outage != nil {
		outage()
		back := storeTime(t, l)
		await("a slot is claimed after the server's return", func(r store.Record) bool { return r.FixedAt.After(back) })
	}
	wantSound(t, l)
	if s := inspected(t, env); s.WorkerType != "t" {
		t.Errorf("leasectl inspect slots = %+v", s)
	}
	if got := leasectl(t, env, "init"); got.code != exit.OK || !strings.Contains(got.stdout, "was there already, with the worker types t") {
		t.Errorf("leasectl init = %+v", got)
	}
	ends(t, slices.Delete(slices.Clone(ps), i, i+1)...)
	for _, p := range ps {
		if strings.Contains(p.output(), cosmospeer.Key()) {
			t.Errorf("the output of %v has the key", p.cmd.Args)
		}
	}
}
