package estimate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/workerlease"
)

// counting is a transport of HTTP that counts.
type counting struct{ n atomic.Int64 }

func (c *counting) Do(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return http.DefaultClient.Do(r)
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestThePlanCountsTheRequestsToCosmosDB(t *testing.T) {
	if os.Getenv("COSMOS_URI") != "" {
		t.Skip("COSMOS_URI is set: containers in a real account would have to be paid for")
	}
	transport := &counting{}
	l, err := cosmos.Open(t.Context(), cosmos.Options{
		URI: cosmospeer.URI(t), Key: cosmospeer.Key(), Database: fmt.Sprint("plan-", time.Now().UnixNano()), Transport: transport,
	})
	must(t, err)
	wantRequests(t, l, pricesOf(Cosmos, 2), &transport.n)
}

func TestThePlanCountsTheRequestsToMongoDB(t *testing.T) {
	var n atomic.Int64
	database := fmt.Sprint("plan-", time.Now().UnixNano())
	client, err := driver.Connect(options.Client().ApplyURI(mongopeer.URI(t)).SetMonitor(&event.CommandMonitor{
		Started: func(context.Context, *event.CommandStartedEvent) { n.Add(1) },
	}))
	must(t, err)
	t.Cleanup(func() {
		err := client.Database(database).Drop(context.Background())
		if err := errors.Join(err, client.Disconnect(context.Background())); err != nil {
			t.Error(err)
		}
	})
	l, err := mongo.Open(t.Context(), mongo.Options{Client: client, Database: database})
	must(t, err)
	wantRequests(t, l, pricesOf(Mongo, 2), &n)
}

// wantRequests does each operation once, after a first time in which a store may
// look whether all is as it should be.
func wantRequests(t *testing.T, l store.Ledger, p prices, n *atomic.Int64) {
	t.Helper()
	defer l.Close(context.Background())
	ctx := t.Context()
	must(t, l.Init(ctx))
	timing := timingOf(t, workerlease.Options{LeaseInterval: 5 * time.Minute})
	seq := int64(0)
	add := func() error {
		seq++
		return l.Append(ctx, recordtest.Grant(seq, int(seq), "worker-a"))
	}
	for range timing.TrimKeep + timing.TrimEvery {
		must(t, add())
	}
	deleted := 0
	do := []struct {
		what string
		of   operations
		call func() error
	}{
		{"now", operations{opNow: 1}, func() error { _, err := l.Now(ctx); return err }},
		{"tail", operations{opTail: 1}, func() error { _, _, err := l.Tail(ctx, "export", 1); return err }},
		{"append", operations{opAppend: 1}, add},
		{"get", operations{opGet: 1}, func() error { _, err := l.Get(ctx, "export", seq-timing.TrimKeep); return err }},
		{"trim", operations{opTrim: 1, opDeleted: float64(timing.TrimEvery)}, func() (err error) {
			deleted, err = l.Trim(ctx, "export", timing.TrimEvery+1)
			return err
		}},
	}
	presence := store.Presence{WorkerType: "export", ID: "a.1", InstanceID: "worker-a", Phase: store.PhaseCandidate, Seen: time.Now()}
	must(t, l.(store.Roster).Attend(ctx, []store.Presence{presence}))
	for _, o := range do[:2] {
		must(t, o.call())
	}
	for _, o := range do {
		before := n.Load()
		if err := o.call(); err != nil {
			t.Fatalf("%s: %v", o.what, err)
		}
		if got, want := float64(n.Load()-before), p.of(o.of)[inRequests]; got != want {
			t.Errorf("%s: %v requests, planned %v", o.what, got, want)
		}
	}
	for what, o := range map[string]struct {
		cost cost
		call func() error
	}{
		"names":          {p.listing, func() error { _, err := l.WorkerTypes(ctx); return err }},
		"roster":         {p.roster, func() error { _, err := l.(store.Roster).Presences(ctx, ""); return err }},
		"newest records": {p.recent, func() error { _, _, err := l.Tail(ctx, "export", seenRecords); return err }},
	} {
		before := n.Load()
		if err := o.call(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got, want := float64(n.Load()-before), o.cost[inRequests]; got != want {
			t.Errorf("%s: %v requests, planned %v", what, got, want)
		}
	}
	if deleted != int(timing.TrimEvery) {
		t.Errorf("the trim deleted %d records, want %d", deleted, timing.TrimEvery)
	}
}
