package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/kubepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// namespaces counts those that tests have used.
var namespaces atomic.Int64

// uri is that of a namespace, for a user of the server.
func uri(namespace, kubeconfig, user string) string {
	return scheme + namespace + "?kubeconfig=" + kubeconfig + "&context=" + user
}

// opened opens a ledger, which is closed when the test ends.
func opened(t testing.TB, o Options) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), o)
	must(t, "Open()", err)
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

var must, within = documenttest.Must, suites.Deadline

// site is a namespace in which the users worker and reader have the roles of rbac.yaml.
type site struct {
	namespace, kubeconfig string
	admin                 *cluster
}

// fresh makes a namespace.
func fresh(t testing.TB, kubeconfig string) *site {
	t.Helper()
	s := &site{namespace: fmt.Sprintf("test-%d", namespaces.Add(1)), kubeconfig: kubeconfig}
	s.admin = opened(t, Options{URI: uri(s.namespace, kubeconfig, "admin")}).c
	must(t, "createNamespace()", s.admin.createNamespace(within(t)))
	s.apply(t)
	return s
}

// open opens the ledger as a user.
func (s *site) open(t testing.TB, user string) *Ledger {
	t.Helper()
	return opened(t, Options{URI: uri(s.namespace, s.kubeconfig, user)})
}

// apply creates what rbac.yaml has, with the test's users in place of service accounts.
func (s *site) apply(t testing.TB) {
	t.Helper()
	text, err := os.ReadFile("rbac.yaml")
	must(t, "ReadFile()", err)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var o map[string]any
		must(t, "Unmarshal()", yaml.Unmarshal([]byte(document), &o))
		at := "/api/v1/namespaces/" + s.namespace + "/serviceaccounts"
		switch o["kind"] {
		case "Role":
			at = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + s.namespace + "/roles"
		case "RoleBinding":
			continue // It is for the service account.
		}
		s.send(t, http.MethodPost, at, o)
	}
	for _, user := range []string{"worker", "reader"} {
		s.send(t, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+s.namespace+"/rolebindings", map[string]any{
			"metadata": map[string]any{"name": user}, "subjects": []any{map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}},
			"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "slotlease-" + user},
		})
	}
	// The API server takes in rights by a watch.
	for _, user := range []string{"worker", "reader"} {
		l := s.open(t, user)
		for ctx := within(t); ; time.Sleep(10 * time.Millisecond) {
			_, err := l.c.Read(ctx, storekit.RecordName("job", 1))
			if errors.Is(err, store.ErrNotFound) {
				break
			}
			if ctx.Err() != nil {
				t.Fatal(err)
			}
		}
	}
}

// send sends a request as the admin.
func (s *site) send(t testing.TB, method, path string, body any) {
	t.Helper()
	if err := s.admin.do(within(t), request{method: method, path: path, body: body}, nil); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
}

// plant stores an object's content without the store's checks, in place of what is there.
func (s *site) plant(t testing.TB, name, body string) {
	t.Helper()
	m := made(name, []byte(body))
	ctx := within(t)
	_ = s.admin.do(ctx, request{method: http.MethodDelete, path: s.admin.path(m.Metadata.Name)}, nil)
	err := s.admin.do(ctx, request{method: http.MethodPost, path: s.admin.path(""), body: m}, nil)
	if e, ok := errors.AsType[*statusError](err); ok && e.code == http.StatusUnprocessableEntity {
		if parse(name).kind == kindRecord {
			t.Skip("no object has such a name")
		}
		m.Metadata = metadata{Name: fmt.Sprintf("roster-planted.id-%d", namespaces.Add(1)), Labels: object{kind: kindPresence, workerType: "planted"}.labels()}
		err = s.admin.do(ctx, request{method: http.MethodPost, path: s.admin.path(""), body: m}, nil)
	}
	must(t, "do()", err)
}

func TestALedgerKeepsTheContractOfAStore(t *testing.T) {
	kubeconfig := kubepeer.Shared(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		s := fresh(t, kubeconfig)
		return storetest.Harness{
			Open:        func(t testing.TB) store.Ledger { return s.open(t, "worker") },
			OpenReading: func(t testing.TB) store.Ledger { return s.open(t, "reader") },
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				s.plant(t, storekit.RecordName(workerType, seq), string(storetest.Document(t, map[string]any{"workerType": workerType, "seq": seq}, fields)))
			},
			PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
				t.Helper()
				s.plant(t, storekit.PresenceName(workerType, id), string(storetest.Document(t, map[string]any{"id": storekit.PresenceKey(workerType, id), "workerType": workerType}, fields)))
			},
			MaxDocument: 1<<20 - 64, // what a ConfigMap takes
			FreeStamp:   true,
			Rounds:      100,
			Skips: map[string]string{
				"two paths":                           "a namespace has one path",
				"foreign constraints":                 "Kubernetes knows no constraints, and admission webhooks need a server of their own",
				"hostile names from outside/*/plant*": "no object has such a name",
			},
		}
	})
}
