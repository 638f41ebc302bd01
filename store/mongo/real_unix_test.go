//go:build unix

package mongo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/testutil/storetest"
	"github.com/slotlease/slotlease/workerlease"
)

// The tests of this file run on real servers: make mongodb MONGOD=/path/mongod MONGOS=/path/mongos.
// Without those programs they are skipped. They take real time, so they don't run in parallel.

func TestConformanceOnARealSet(t *testing.T) {
	uri := mongopeer.StartSet(t, mongopeer.SetOptions{}).URI("")
	storetest.Run(t, conforms(dial(t, uri), uri, 150))
}

func TestConformanceOnARealCluster(t *testing.T) {
	uri := mongopeer.StartCluster(t).URI()
	storetest.Run(t, conforms(dial(t, uri), uri, 150))
}

// Workers in slots of 2 s, through step-downs, kills, and partitions of a primary that all of them
// still reach, and that is rolled back.
func TestWorkersOnARealSetThroughElectionsAndRollbacks(t *testing.T) {
	s := mongopeer.StartSet(t, mongopeer.SetOptions{})
	const length = 2 * time.Second
	every, err := slots.Every(length)
	must(t, "Every()", err)
	f := &fleet{t: t}
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	for i := range 3 {
		l := open(t, Options{URI: s.URI(""), Database: "fleet"})
		must(t, "Init()", l.Init(within(t, patience)))
		name := fmt.Sprint("w", i)
		o := workerlease.Options{WorkerType: "job", InstanceID: name, Schedule: every, Priority: i}
		ended.Go(func() {
			if err := workerlease.NewClient(l, workerlease.ClientOptions{}).Run(ctx, o, f.work(name)); err != nil {
				t.Errorf("%s: Run() = %v, want nil", name, err)
			}
		})
	}
	// led waits for more leases.
	led := func(after string, more int) {
		t.Helper()
		f.mu.Lock()
		before := f.led
		f.mu.Unlock()
		suites.Eventually(t, fmt.Sprintf("%d leases after %s", more, after), func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.led >= before+more
		})
	}
	led("the start", 2)
	for range 4 {
		s.StepDown()
		led("a step-down", 2)

		p := s.Primary()
		s.Kill(p)
		led("a kill of the primary", 1)
		s.Restart(p)
		led("its restart", 2)

		s.Cut(s.Primary())
		time.Sleep(3 * length) // The others elect a primary after 2 s, and the old one gives up.
		led("a partition", 1)
		s.Heal()
		led("its end", 2)
	}
	ours := 0
	for _, doc := range s.RolledBack() {
		if workerType, _ := doc.Lookup("workerType").StringValueOK(); workerType == "job" {
			ours++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t.Logf("%d leases, %d records rolled back", f.led, ours)
	if ours == 0 {
		t.Error("no record was rolled back in 4 partitions, want some")
	}
}

// The rights that the package's documentation calls the minimum.
func TestLeastRightsOnARealSet(t *testing.T) {
	s := mongopeer.StartSet(t, mongopeer.SetOptions{Auth: true})
	// user makes a user whose role has some actions on jobs.leases alone.
	user := func(name string, actions ...string) string {
		t.Helper()
		s.Do(bson.D{{Key: "createRole", Value: name}, {Key: "roles", Value: bson.A{}}, {Key: "privileges", Value: bson.A{bson.D{
			{Key: "resource", Value: bson.D{{Key: "db", Value: "jobs"}, {Key: "collection", Value: "leases"}}},
			{Key: "actions", Value: actions},
		}}}})
		s.Do(bson.D{{Key: "createUser", Value: name}, {Key: "pwd", Value: mongopeer.Password}, {Key: "roles", Value: bson.A{name}}})
		return strings.Replace(s.URI(name), "/?", "/jobs?collection=leases&", 1)
	}
	root := open(t, Options{URI: strings.Replace(s.URI(mongopeer.Root), "/?", "/jobs?collection=leases&", 1)})
	must(t, "Init()", root.Init(within(t, patience)))

	least := open(t, Options{URI: user("least", "find", "insert", "remove")})
	ctx := within(t, 2*time.Minute)
	for seq := range int64(3) {
		must(t, "Append()", least.Append(ctx, storetest.Grant("job", seq+1)))
	}
	wantSentinel(t, "Append() again", least.Append(ctx, storetest.Grant("job", 3)), store.ErrConflict)
	if got := seqs(t, least); len(got) != 3 {
		t.Errorf("Tail() = %d, want 3, 2, 1", got)
	}
	if n, err := least.Trim(ctx, "job", 2); n != 1 || err != nil {
		t.Errorf("Trim() = %d, %v, want 1", n, err)
	}
	if types, err := least.WorkerTypes(ctx); err != nil || len(types) != 1 {
		t.Errorf("WorkerTypes() = %q, %v, want job", types, err)
	}
	_, err := least.Now(ctx)
	must(t, "Now()", err)

	wantSentinel(t, "Append() without insert", open(t, Options{URI: user("noinsert", "find", "remove")}).Append(ctx, storetest.Grant("job", 4)), store.ErrDenied)
	_, err = open(t, Options{URI: user("nofind", "insert", "remove")}).Get(ctx, "job", 3)
	wantSentinel(t, "Get() without find", err, store.ErrDenied)
	wrong := open(t, Options{URI: strings.Replace(user("wrong", "find"), mongopeer.Password, "guess", 1)})
	_, err = wrong.Get(ctx, "job", 3)
	wantSentinel(t, "Get() with a wrong password", err, store.ErrDenied)
}
