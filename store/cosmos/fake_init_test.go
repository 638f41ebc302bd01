package cosmos

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestInitCreatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	const (
		manual    = "X-Ms-Offer-Throughput"
		automatic = "X-Ms-Cosmos-Offer-Autopilot-Settings"
	)
	for name, c := range map[string]struct {
		o                 Options
		manual, automatic string
	}{
		"by default":             {Options{}, "400", ""},
		"by hand":                {Options{Throughput: 1000}, "1000", ""},
		"by hand, in the URI":    {Options{URI: "cosmos://acct/?throughput=600"}, "600", ""},
		"autoscale":              {Options{Autoscale: 4000}, "", `{"maxThroughput":4000}`},
		"autoscale, in the URI":  {Options{URI: "cosmos://acct/?autoscale=1000"}, "", `{"maxThroughput":1000}`},
		"serverless":             {Options{Serverless: true}, "", ""},
		"serverless, in the URI": {Options{URI: "cosmos://acct/?serverless=true"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.container = nil
			l := f.open(t, c.o)
			for range 2 {
				wantErr(t, "Init()", l.Init(within(t, time.Minute)), nil)
			}
			if n := f.ops("create container"); n != 1 {
				t.Fatalf("containers created = %d, want 1: what is there isn't touched", n)
			}
			for _, r := range f.log {
				switch r.op {
				case "create database":
					if r.text != `{"id":"WorkerProcess"}` || r.Header.Get(manual) != "" {
						t.Errorf("database created as %s with %s, want one without throughput of its own", r.text, r.Header.Get(manual))
					}
				case "create container":
					want := `{"id":"WorkerLeases","partitionKey":{"kind":"Hash","paths":["/workerType"],"version":2},` +
						`"indexingPolicy":{"automatic":true,"indexingMode":"Consistent","includedPaths":[{"path":"/id/?"},{"path":"/workerType/?"}],"excludedPaths":[{"path":"/*"}]}}`
					if r.text != want {
						t.Errorf("container created as %s\nwant %s", r.text, want)
					}
					documenttest.Equal(t, "throughput", r.Header.Get(manual), c.manual)
					documenttest.Equal(t, "autoscale", r.Header.Get(automatic), c.automatic)
				}
			}
			wantErr(t, "Append() after Init", l.Append(within(t, time.Minute), storetest.Grant("job", 1)), nil)
		})
	}
}

func TestInitWithoutTheRightSaysWhatToDo(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.container = nil
	f.hook = always("create database", refusal(403, "operations of management can't be authorised by tokens", headerSubstatus, "5300"))
	err := f.open(t, Options{}).Init(within(t, time.Minute))
	wantSentinel(t, "Init()", err, store.ErrDenied)
	documenttest.Says(t, "Init()", err, nil, "az cosmosdb sql")
}

func TestInitOfAContainerThatSomebodyElseJustMadeOtherwise(t *testing.T) {
	t.Parallel()
	f := newFake()
	other := f.container
	other["defaultTtl"] = 60
	f.container = nil
	f.hook = on("create container", func(*fakeRequest) *fakeReply {
		f.set(func() { f.container = other })
		return nil
	})
	wantSentinel(t, "Init()", f.open(t, Options{}).Init(within(t, time.Minute)), store.ErrRefused)
}

// An operation looks for the container before Init creates it, and hears of that later.
func TestALookFromBeforeInitCountsNoMore(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.container = nil
		var looks atomic.Int64
		late := make(chan struct{})
		f.hook = on("container", func(*fakeRequest) *fakeReply {
			if looks.Add(1) == 1 {
				<-late
				return refusal(404, "Owner resource does not exist", headerSubstatus, substatusOwnerMissing)
			}
			return nil
		})
		l := f.open(t, Options{})
		early := make(chan error, 1)
		go func() { early <- l.Append(within(t, time.Minute), storetest.Grant("job", 1)) }()
		synctest.Wait()
		wantErr(t, "Init()", l.Init(within(t, time.Minute)), nil)
		close(late)
		wantSentinel(t, "Append() from before Init", <-early, store.ErrMissing)
		for range 2 {
			time.Sleep(time.Second)
			if err := l.Append(within(t, time.Minute), storetest.Grant("job", 1)); err != nil && !errors.Is(err, store.ErrConflict) {
				t.Errorf("Append() after Init = %v, want nil and then ErrConflict: the container is there", err)
			}
		}
		documenttest.Equal(t, "items created or tried", f.ops("create"), 2)
	})
}
