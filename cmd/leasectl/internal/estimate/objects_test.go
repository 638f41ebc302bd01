package estimate

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/internal/recordtest"
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
		must(t, err)
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
		must(t, err)
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
			must(t, l.Init(ctx))
			timing := timingOf(t, workerlease.Options{LeaseInterval: time.Hour})
			planned := Of(Options{Store: kind, Workers: 1, Slot: time.Hour, Timing: timing})
			seq := int64(0)
			add := func() error {
				seq++
				return l.Append(ctx, recordtest.Grant(seq, int(seq), "worker-a"))
			}
			for seq < timing.TrimKeep+timing.TrimEvery-1 {
				must(t, add())
			}
			presence := store.Presence{WorkerType: "export", ID: "a.1", InstanceID: "worker-a", Phase: store.PhaseCandidate, Seen: time.Now()}
			p := planned.prices
			counts.take()
			for _, o := range []struct {
				what string
				cost cost
				call func() error
			}{
				{"now", p.each[opNow], func() error { _, err := l.Now(ctx); return err }},
				{"tail", p.each[opTail], func() error { _, _, err := l.Tail(ctx, "export", 2); return err }},
				{"append", p.each[opAppend], add},
				{"get", p.each[opGet], func() error { _, err := l.Get(ctx, "export", seq-timing.TrimKeep); return err }},
				{"trim", sum(p.each[opTrim], times(p.each[opDeleted], float64(timing.TrimEvery))), func() error {
					_, err := l.Trim(ctx, "export", timing.TrimEvery+1)
					return err
				}},
				{"presence", p.presence, func() error { return l.(store.Roster).Attend(ctx, []store.Presence{presence}) }},
				{"names", p.listing, func() error { _, err := l.WorkerTypes(ctx); return err }},
				{"roster", p.roster, func() error { _, err := l.(store.Roster).Presences(ctx, ""); return err }},
				{"newest records", p.recent, func() error { _, _, err := l.Tail(ctx, "export", seenRecords); return err }},
			} {
				if err := o.call(); err != nil {
					t.Fatalf("%s: %v", o.what, err)
				}
				if diff := cmp.Diff(planned.kind.counted(o.cost), counts.take()); diff != "" {
					t.Errorf("requests of %s (-planned +sent):\n%s", o.what, diff)
				}
			}
		})
	}
}

func TestAzureAndKubernetesListWhatATrimPassesOver(t *testing.T) {
	slot := 10 * time.Second
	timing := timingOf(t, workerlease.Options{LeaseInterval: slot})
	for kind, want := range map[string]float64{S3: 1 + 1, AzureBlob: 1 + 3, Kubernetes: 1 + 13} { // of 12,800 records
		e := Of(Options{Store: kind, Workers: 1, Slot: slot, Timing: timing})
		if got := e.prices.each[opTrim][inLists]; got != want {
			t.Errorf("%v lists of a trim of %s, want %v (%+v)", got, kind, want, e.kept)
		}
	}
}
