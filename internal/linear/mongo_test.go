package linear_test

import (
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/workload"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

// Each round has its own collection, because the peer scans it for each tail.
func TestMongoIsLinearizableWhileThePeerIsKilledAndPaused(t *testing.T) {
	suites.Prove(t, "it kills a server again and again")
	t.Parallel()
	const keys, calls = 30, 60
	peer := mongopeer.Start(t)
	var connections []*driver.Client
	for range clients {
		c, err := driver.Connect(options.Client().ApplyURI(peer.URI()))
		must(t, err)
		connections = append(connections, c)
		defer func() { _ = c.Disconnect(t.Context()) }()
	}
	var sum linear.Result
	for i := 0; sum.Searched < share(t, 1) || i < 12; i++ {
		// Every third round is disturbed. In 24 rounds, each kind of plan is, by a
		// kill and by a pause.
		p := workload.Round(i, keys, calls)
		h := linear.NewHistory()
		disturbed := i%3 == 2
		first, err := mongo.Open(t.Context(), mongo.Options{Client: connections[0], Database: "linear", Collection: p.WorkerType})
		if err == nil {
			err = first.Init(t.Context())
		}
		must(t, err)
		workload.Compete(t.Context(), p, clients, func(name string, n int) *workload.Client {
			l, err := mongo.Open(t.Context(), mongo.Options{Client: connections[n], Database: "linear", Collection: p.WorkerType})
			must(t, err)
			patience := 5 * time.Second
			if disturbed && name != workload.Last {
				patience = 200 * time.Millisecond
			}
			return workload.New(h.Client(name, l), clock.New(), patience, name, uint64(i))
		}, func() {
			if !disturbed {
				return
			}
			for h.Len() < 100 && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			if j := i / 3; (j+j/4)%2 == 0 {
				peer.Restart()
			} else {
				peer.Pause()
				time.Sleep(250 * time.Millisecond)
				peer.Resume()
			}
		})
		result := check(t, h)
		if t.Failed() {
			t.Fatalf("round %d is not linearizable", i)
		}
		sum.Add(result)
	}
	if sum.Unknown == 0 || sum.Conflicts == 0 {
		t.Errorf("%d unknown outcomes, %d conflicts, want some of each", sum.Unknown, sum.Conflicts)
	}
	table.add(rowMongo, sum)
}
