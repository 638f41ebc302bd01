package kubernetes

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/kubepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// asked counts requests by their kinds, as leasectl plan names them.
type asked struct {
	http.RoundTripper

	mu    sync.Mutex
	kinds map[string]int
}

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete", http.MethodGet: "get"}[r.Method]
	switch {
	case r.URL.Path == "/version":
		kind = "version"
	case kind == "get" && strings.HasSuffix(r.URL.Path, "/configmaps"):
		kind = "list"
	}
	a.mu.Lock()
	a.kinds[kind]++
	a.mu.Unlock()
	return a.RoundTripper.RoundTrip(r)
}

// take returns the counts, and begins anew.
func (a *asked) take() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	kinds := a.kinds
	a.kinds = map[string]int{}
	return kinds
}

// What leasectl plan --store kubernetes counts for each operation: see cmd/leasectl/internal/estimate.
func TestAnOperationTakesTheRequestsThatAreDocumented(t *testing.T) {
	t.Parallel()
	s := fresh(t, kubepeer.Shared(t))
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: s.kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: "worker"}).ClientConfig()
	must(t, "NewNonInteractiveDeferredLoadingClientConfig()", err)
	counts := &asked{kinds: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counts.RoundTripper = next
		return counts
	})
	l := opened(t, Options{URI: scheme + s.namespace, Config: config})
	ctx := within(t)
	seq := int64(0)
	add := func() error { seq++; return l.Append(ctx, storetest.Grant("job", seq)) }
	for range 153 {
		must(t, "add()", add())
	}
	presence := store.Presence{WorkerType: "job", ID: "0123456789abcdef-0123456789abcdef.1", InstanceID: "worker-a", Phase: store.PhaseCandidate, Seen: time.Now()}
	must(t, "Attend()", l.Attend(ctx, []store.Presence{presence}))
	counts.take()
	for _, o := range []struct {
		what string
		want map[string]int
		call func(context.Context) error
	}{
		{"an append", map[string]int{"create": 1}, func(context.Context) error { return add() }},
		{"a tail", map[string]int{"list": 1}, func(ctx context.Context) error { _, _, err := l.Tail(ctx, "job", 2); return err }},
		{"a get", map[string]int{"get": 1}, func(ctx context.Context) error { _, err := l.Get(ctx, "job", 9); return err }},
		{"the time", map[string]int{"version": 1}, func(ctx context.Context) error { _, err := l.Now(ctx); return err }},
		// The head, and pages of 16, 64 and more: a list asks for few contents at first.
		{"a trim", map[string]int{"list": 4, "delete": 53}, func(ctx context.Context) error { _, err := l.Trim(ctx, "job", 54); return err }},
		{"a presence", map[string]int{"update": 1}, func(ctx context.Context) error { return l.Attend(ctx, []store.Presence{presence}) }},
	} {
		if err := o.call(ctx); err != nil {
			t.Fatalf("%s: %v", o.what, err)
		}
		if got := counts.take(); !maps.Equal(got, o.want) {
			t.Errorf("requests of %s: %v, want %v", o.what, got, o.want)
		}
	}

	// The object around a record, as the API server shows it: leasectl plan adds 500 bytes to each document for that.
	var m struct {
		Data map[string]string `json:"data"`
		Rest map[string]any    `json:"metadata"`
	}
	name := parse(storekit.RecordName("job", seq)).name()
	must(t, "do()", s.admin.do(ctx, request{method: http.MethodGet, path: s.admin.path(name)}, &m))
	around, err := json.Marshal(m.Rest)
	if n := len(around); err != nil || n < 350 || n > 650 {
		t.Errorf("the metadata of a record's object have %d bytes, want about 500 (%v): %s", n, err, around)
	}
}
