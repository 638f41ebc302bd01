package linear_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/benbjohnson/clock"
	"github.com/rs/zerolog"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/workload"
	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

const (
	// standardOps scales the run: about a tenth of that number of operations is checked.
	standardOps = 60_000

	clients = 6
	keys    = 30
	calls   = 60
	// patience is how long a client waits for a reply, outage how long a fault
	// lasts: data that a proxy holds back arrives when no client waits for it any more.
	patience = 150 * time.Millisecond
	outage   = 300 * time.Millisecond
)

// faults are what can happen to a connection. A stream is upstream, towards the
// peer, or downstream.
var faults = []struct{ name, toxic string }{
	{name: "none"},
	{"delay of requests", `{"name": "fault", "stream": "upstream", "type": "latency", "attributes": {"latency": 80, "jitter": 80}}`},
	{"delay of replies", `{"name": "fault", "stream": "downstream", "type": "latency", "attributes": {"latency": 80, "jitter": 80}}`},
	{"black hole for requests", `{"name": "fault", "stream": "upstream", "type": "timeout", "attributes": {"timeout": 0}}`},
	{"black hole for replies", `{"name": "fault", "stream": "downstream", "type": "timeout", "attributes": {"timeout": 0}}`},
	{"reset on requests", `{"name": "fault", "stream": "upstream", "type": "reset_peer", "attributes": {"timeout": 5}}`},
	{"reset on replies", `{"name": "fault", "stream": "downstream", "type": "reset_peer", "attributes": {"timeout": 5}}`},
	{name: "shut"},
}

// strike lets a fault happen to a proxy for a while.
func strike(p *toxiproxy.Proxy, name, toxic string) error {
	switch {
	case name == "none":
		return nil
	case toxic == "":
		p.Stop()
		time.Sleep(outage)
		return p.Start()
	}
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		return err
	}
	time.Sleep(outage)
	return p.Toxics.RemoveToxic(context.Background(), "fault")
}

func TestMongoIsLinearizableBehindANetworkThatMisbehaves(t *testing.T) {
	standard := standardOps
	if testing.Short() {
		standard = 10
	}
	all, err := workload.Operations(standard)
	if err != nil {
		t.Fatal(err)
	}
	want := all / 10
	peer := mongopeer.Start(t)
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	connect := func(addr string) *driver.Client {
		c, err := driver.Connect(options.Client().ApplyURI("mongodb://" + addr + "/"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
		return c
	}
	var proxies []*toxiproxy.Proxy
	var connections []*driver.Client
	for i := range clients {
		p := toxiproxy.NewProxy(api, fmt.Sprint("client-", i), "127.0.0.1:0", peer.Addr())
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)
		proxies, connections = append(proxies, p), append(connections, connect(p.Listen))
	}
	direct := connect(peer.Addr())

	random := rand.New(rand.NewPCG(1, 1))
	unknown := map[string]int{}
	var sum linear.Result
	for i := 0; sum.Operations < want || i < len(faults); i++ {
		p := workload.Round(i/len(faults)+i, keys, calls)
		p.WorkerType = fmt.Sprint("round-", i)
		h := linear.NewHistory()
		fault := faults[i%len(faults)]
		// A collection for each round: the peer scans it for each tail.
		first, err := mongo.Open(t.Context(), mongo.Options{Client: direct, Database: "linear", Collection: p.WorkerType})
		if err == nil {
			err = first.Init(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		workload.Compete(t.Context(), p, clients, func(name string, n int) *workload.Client {
			c, patience := connections[n], patience
			if name == workload.Last {
				c, patience = direct, 10*time.Second
			}
			l, err := mongo.Open(t.Context(), mongo.Options{Client: c, Database: "linear", Collection: p.WorkerType})
			if err != nil {
				t.Fatal(err)
			}
			return workload.New(h.Client(name, l), clock.New(), patience, name, uint64(i))
		}, func() {
			for h.Len() < 60 && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			var wg sync.WaitGroup
			for _, n := range random.Perm(clients)[:1+random.IntN(clients-1)] {
				wg.Go(func() {
					if err := strike(proxies[n], fault.name, fault.toxic); err != nil {
						t.Errorf("%s at proxy %d: %v", fault.name, n, err)
					}
				})
			}
			wg.Wait()
		})
		result, err := h.Check(time.Minute)
		if err != nil {
			t.Fatalf("round %d, %s: Check() = %v", i, fault.name, err)
		}
		sum.Add(result)
		unknown[fault.name] += result.Unknown
	}
	t.Logf("%d operations, %d of unknown outcome (%v), %d conflicts, %d partitions, %d illegal, %d undecided",
		sum.Operations, sum.Unknown, unknown, sum.Conflicts, sum.Partitions, sum.Illegal, sum.Undecided)
	if sum.Unknown == 0 || sum.Conflicts == 0 {
		t.Errorf("%d unknown outcomes, %d conflicts, want some of each", sum.Unknown, sum.Conflicts)
	}
	if err := figures.Save(figures.Proof{
		Name:    "linearizability-network",
		Command: "cd internal/chaos && go test -v ./linear",
		Figures: []figures.Figure{
			{What: "operations checked on the MongoDB peer behind faulty proxies", Value: strconv.Itoa(sum.Operations)},
			{What: "of unknown outcome", Value: strconv.Itoa(sum.Unknown)},
			{What: "answered with a conflict", Value: strconv.Itoa(sum.Conflicts)},
			{What: "illegal histories", Value: strconv.Itoa(sum.Illegal)},
			{What: "undecided histories", Value: strconv.Itoa(sum.Undecided)},
		},
	}); err != nil {
		t.Error(err)
	}
}
