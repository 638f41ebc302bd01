package estimate

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/azblob"
	"github.com/slotlease/slotlease/store/s3"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/s3peer"
	"github.com/slotlease/slotlease/workerlease"
)

// sorted is a transport of HTTP that counts requests by the kinds of a store.
type sorted struct {
	kind func(r *http.Request) string

	mu    sync.Mutex
	kinds map[string]float64
}

func (s *sorted) Do(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.kinds[s.kind(r)]++
	s.mu.Unlock()
	return http.DefaultClient.Do(r)
}

// take returns the counts, and begins anew.
func (s *sorted) take() map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := s.kinds
	s.kinds = map[string]float64{}
	return kinds
}

// objectStores open a ledger of each store of objects on its peer, with a transport.
var objectStores = map[string]func(t *testing.T, folder string, s *sorted) store.Ledger{
	S3: func(t *testing.T, folder string, s *sorted) store.Ledger {
		t.Helper()
		s.kind = func(r *http.Request) string {
			if r.Method == http.MethodGet && r.URL.Query().Has("list-type") {
				return "list"
			}
			return strings.ToLower(r.Method)
		}
		l, err := s3.Open(t.Context(), s3.Options{
			URI: "s3://plan-test/" + folder + "?pathStyle=true&endpoint=" + url.QueryEscape(s3peer.Shared(t)), Transport: s,
			Getenv: func(name string) string {
				return map[string]string{"AWS_ACCESS_KEY_ID": s3peer.ID, "AWS_SECRET_ACCESS_KEY": s3peer.Secret}[name]
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	},
	// By https://learn.microsoft.com/azure/storage/blobs/map-rest-apis-transaction-categories.
	AzureBlob: func(t *testing.T, folder string, s *sorted) store.Ledger {
		t.Helper()
		s.kind = func(r *http.Request) string {
			switch {
			case r.URL.Query().Get("comp") == "list":
				return "list"
			case r.Method == http.MethodHead || r.URL.Query().Has("comp") || r.URL.Query().Get("restype") == "container":
				return "other"
			}
			return map[string]string{http.MethodPut: "write", http.MethodGet: "read", http.MethodDelete: "delete"}[r.Method]
		}
		l, err := azblob.Open(t.Context(), azblob.Options{
			URI: "azblob://" + azuritepeer.Account + "/plan-test/" + folder + "?endpoint=" + url.QueryEscape(azuritepeer.Shared(t)), Transport: s,
			Getenv: func(name string) string { return map[string]string{"AZURE_STORAGE_KEY": azuritepeer.Key}[name] },
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	},
}

func TestThePlanCountsTheRequestsToStoresOfObjects(t *testing.T) {
	for kind, open := range objectStores {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			counts := &sorted{kinds: map[string]float64{}}
			l := open(t, rand.Text(), counts)
			t.Cleanup(func() { _ = l.Close(context.Background()) })
			ctx := t.Context()
			if err := l.Init(ctx); err != nil {
				t.Fatal(err)
			}
			timing := timingOf(t, workerlease.Options{LeaseInterval: time.Hour})
			planned := Of(Options{Store: kind, Workers: 1, Slot: time.Hour, Timing: timing})
			seq := int64(0)
			add := func() error {
				seq++
				return l.Append(ctx, recordtest.Grant(seq, int(seq), "worker-a"))
			}
			for seq < timing.TrimKeep+timing.TrimEvery-1 {
				if err := add(); err != nil {
					t.Fatal(err)
				}
			}
			presence := store.Presence{WorkerType: "export", ID: "a.1", InstanceID: "worker-a", Phase: store.PhaseCandidate, Seen: time.Now()}
			p := planned.prices
			counts.take()
			for _, o := range []struct {
				what string
				cost cost
				call func() error
			}{
				{"now", p.now, func() error { _, err := l.Now(ctx); return err }},
				{"tail", p.tail, func() error { _, _, err := l.Tail(ctx, "export", 2); return err }},
				{"append", p.append, add},
				{"get", p.get, func() error { _, err := l.Get(ctx, "export", seq-timing.TrimKeep); return err }},
				{"trim", p.trim.plus(p.delete.times(float64(timing.TrimEvery))), func() error {
					_, err := l.Trim(ctx, "export", timing.TrimEvery+1)
					return err
				}},
				{"presence", p.presence, func() error { return l.(store.Roster).Attend(ctx, []store.Presence{presence}) }},
			} {
				if err := o.call(); err != nil {
					t.Fatalf("%s: %v", o.what, err)
				}
				if diff := cmp.Diff(planned.tariff.named(o.cost.Kinds), counts.take()); diff != "" {
					t.Errorf("requests of %s (-planned +sent):\n%s", o.what, diff)
				}
			}
		})
	}
}

// Real workers, on the real clock: all that they send in whole slots.
func TestThePlanCountsWhatWorkersSendToStoresOfObjects(t *testing.T) {
	suites.RealTime(t)
	const slots, slot = 3, 6 * time.Second
	priorities := []int{0, 7} // whose turns are far apart, so that there are no races
	for kind, open := range objectStores {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			counts := &sorted{kinds: map[string]float64{}}
			started, folder := time.Now(), rand.Text()
			for _, priority := range priorities {
				l := open(t, folder, counts)
				if err := l.Init(t.Context()); err != nil {
					t.Fatal(err)
				}
				w, err := workerlease.StartLeasing(t.Context(), l, workerlease.Options{WorkerType: "export", Priority: priority, LeaseInterval: slot}, workerlease.Callbacks{
					LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) { <-ctx.Done() },
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					_ = w.StopLeasing(context.Background())
					_ = l.Close(context.Background())
				})
			}
			// The middle of a slot, when nobody asks for anything. By then there are the two records that a tail shows.
			time.Sleep(time.Until(started.Truncate(slot).Add(4*slot + slot/2)))
			counts.take()
			time.Sleep(slots * slot)
			got := counts.take()

			planned := Of(Options{Store: kind, Workers: len(priorities), Slot: slot, Timing: timingOf(t, workerlease.Options{LeaseInterval: slot})})
			all := planned.rows[0].each.plus(planned.rows[1].each).times(slots)
			want := planned.tariff.named(planned.prices.of(all).Kinds)
			// A look at the time may be saved.
			look := planned.tariff.kinds[dating]
			if got[look] < want[look]-slots || got[look] > want[look] {
				t.Errorf("%v looks at the time in %d slots, planned %v", got[look], slots, want[look])
			}
			delete(got, look)
			delete(want, look)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests in %d slots (-planned +sent):\n%s", slots, diff)
			}
		})
	}
}

func TestAzureAndKubernetesListWhatATrimPassesOver(t *testing.T) {
	slot := 10 * time.Second
	timing := timingOf(t, workerlease.Options{LeaseInterval: slot})
	for kind, want := range map[string]float64{S3: 1 + 1, AzureBlob: 1 + 3, Kubernetes: 1 + 13} { // of 12,800 records
		e := Of(Options{Store: kind, Workers: 1, Slot: slot, Timing: timing})
		if got := e.prices.trim.Kinds[listing]; got != want || !slices.Contains(KindNames(kind), "list") {
			t.Errorf("%v lists of a trim of %s, want %v (%+v)", got, kind, want, e.kept)
		}
	}
}

// The figures of the stores' documentation: see doc.go of store/s3 and store/azblob.
func TestRequestsCostWhatTheDocumentationSays(t *testing.T) {
	timing := timingOf(t, workerlease.Options{LeaseInterval: 5 * time.Minute})
	for kind, want := range map[string]struct{ slot, month float64 }{S3: {0.0000238, 0.209}, AzureBlob: {0.0000262, 0.229}} {
		e := Of(Options{Store: kind, Workers: 3, Slot: 5 * time.Minute, Timing: timing})
		slot, month := e.tariff.bill(e.rows[3].cost.Kinds), e.Report().PerDay[0].Monthly
		if !near(slot, want.slot) || !near(month, want.month) {
			t.Errorf("%s: $%.7f for a slot and $%.3f a month, want $%.7f and $%.3f", kind, slot, month, want.slot, want.month)
		}
		free := Of(Options{Store: kind, Workers: 3, Slot: 5 * time.Minute, Timing: timing, Prices: map[string]float64{KindNames(kind)[putting]: 0, "list": 0, KindNames(kind)[getting]: 0, KindNames(kind)[dating]: 0, gigabytePrice: 0}})
		if r := free.Report(); r.PerDay[0].Dollars != 0 || r.Kept.DollarsFor != 0 || len(r.Prices.Changed) != 5 {
			t.Errorf("%s for nothing costs %+v", kind, r)
		}
	}
}

// No price was read where it is charged by, so none may look as if it were.
func TestPricesSayWhatTheyRestOn(t *testing.T) {
	timing := timingOf(t, workerlease.Options{LeaseInterval: 5 * time.Minute})
	for kind, want := range map[string]string{S3: "Unconfirmed", AzureBlob: "Fictitious"} {
		given := map[string]float64{}
		for _, name := range PriceNames(kind) {
			e := Of(Options{Store: kind, Workers: 3, Slot: 5 * time.Minute, Timing: timing, Prices: given})
			if !strings.Contains(e.Report().Prices.Basis, want) || !strings.Contains(strings.Join(e.assumptions(), " "), " "+want) {
				t.Errorf("the prices of %s but %v rest on %q, want that it is %s", kind, given, e.Report().Prices.Basis, want)
			}
			given[name] = 1
		}
		delete(given, "delete") // which is free
		e := Of(Options{Store: kind, Workers: 3, Slot: 5 * time.Minute, Timing: timing, Prices: given})
		if got := e.Report().Prices.Basis + strings.Join(e.assumptions(), " "); strings.Contains(got, want) {
			t.Errorf("the prices of %s that were all given count as others: %s", kind, got)
		}
	}
}

func near(a, b float64) bool { return a > b*0.995 && a < b*1.005 }
