package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/kubepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// add appends the grants first … last.
func add(t testing.TB, l store.Ledger, workerType string, first, last int64) {
	t.Helper()
	for seq := first; seq <= last; seq++ {
		must(t, "Append()", l.Append(within(t), storetest.Grant(workerType, seq)))
	}
}

func TestARecordCantBeChangedEvenByTheAdmin(t *testing.T) {
	t.Parallel()
	s := fresh(t, kubepeer.Shared(t))
	l := s.open(t, "worker")
	add(t, l, "job", 1, 1)
	m := made(storekit.RecordName("job", 1), []byte("{}"))
	for _, c := range []*cluster{s.admin, l.c} {
		err := c.do(within(t), request{method: http.MethodPut, path: c.path(m.Metadata.Name), body: m}, nil)
		if e, ok := errors.AsType[*statusError](err); !ok || e.code != http.StatusUnprocessableEntity || !strings.Contains(e.message, "immutable") {
			t.Errorf("an update of a record = %v, want that it is immutable", err)
		}
	}
	if r, err := l.Get(within(t), "job", 1); err != nil || r != storetest.Grant("job", 1) {
		t.Errorf("Get() = %+v, %v, want the record as it was", r, err)
	}
}

func TestListsOfManyPagesBeginWithTheNewest(t *testing.T) {
	t.Parallel()
	s := fresh(t, kubepeer.Shared(t))
	l := s.open(t, "worker")
	const most = mostValues + 30
	for _, workerType := range []string{"a", "b_", "C.d"} {
		add(t, l, workerType, 1, 3)
	}
	add(t, l, "b", 1, most)
	for _, limit := range []int{1, 16, most - 1, most + 100} {
		got, stamp, err := l.Tail(within(t), "b", limit)
		if err != nil || len(got) != min(limit, most) || stamp.IsZero() {
			t.Fatalf("Tail(%d) = %d records, %v, %v", limit, len(got), stamp, err)
		}
		for i, r := range got {
			if r != storetest.Grant("b", int64(most-i)) {
				t.Fatalf("Tail(%d)[%d] = %+v, want the newest first", limit, i, r)
			}
		}
	}
	// As many pages as there are, by the server's own order, and with others in between.
	seen := 0
	if err := l.c.List(within(t), recordFolder, "", 0, func(storekit.Object) bool { seen++; return true }); err != nil || seen != most+9 {
		t.Errorf("List() visits %d objects, %v, want %d", seen, err, most+9)
	}
	if types, err := l.WorkerTypes(within(t)); err != nil || !slices.Equal(types, []string{"C.d", "a", "b", "b_"}) {
		t.Errorf("WorkerTypes() = %q, %v", types, err)
	}
	if got, _, err := l.Tail(within(t), "b_", 5); err != nil || len(got) != 3 {
		t.Errorf("Tail(b_) = %d records, %v, want those of this type alone", len(got), err)
	}
}

func TestManyWorkerTypesAreFound(t *testing.T) {
	t.Parallel()
	s := fresh(t, kubepeer.Shared(t))
	l := s.open(t, "worker")
	var want []string
	for n := range mostTypes + 20 {
		name := fmt.Sprintf("job%03d", n)
		want = append(want, name, name+"-")
		add(t, l, name, 1, 1)
		add(t, l, name+"-", 1, 1)
	}
	if got, err := l.WorkerTypes(within(t)); err != nil || !slices.Equal(got, want) {
		t.Errorf("WorkerTypes() = %d of %d, %v", len(got), len(want), err)
	}
}

func TestAQuotaRefusesWithoutDenying(t *testing.T) {
	t.Parallel()
	s := fresh(t, kubepeer.Shared(t))
	l := s.open(t, "worker")
	add(t, l, "job", 1, 1)
	hard := map[string]string{"count/configmaps": "1"}
	at := "/api/v1/namespaces/" + s.namespace + "/resourcequotas"
	quota := map[string]any{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "few"}, "spec": map[string]any{"hard": hard}}
	s.send(t, http.MethodPost, at, quota)
	// A controller does this, which isn't there.
	quota["status"] = map[string]any{"hard": hard, "used": map[string]string{"count/configmaps": "1"}}
	s.send(t, http.MethodPut, at+"/few/status", quota)
	var err error
	for seq, ctx := int64(2), within(t); err == nil && ctx.Err() == nil; seq++ { // The server takes quotas in by a watch.
		err = l.Append(ctx, storetest.Grant("job", seq))
	}
	if !errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("Append() beyond a quota = %v", err)
	}
	admin := examined(t, s.open(t, "admin"))
	if f := admin[CheckQuota]; f.Level != store.LevelWarn || f.Remedy == "" {
		t.Errorf("Examine() says %+v of a quota", f)
	}
	if f := admin[store.CheckAppend]; f.Level != store.LevelFail {
		t.Errorf("Examine() says %+v of appends beyond a quota", f)
	}
}

func TestANamespaceThatIsBeingDeletedIsRefused(t *testing.T) {
	t.Parallel()
	s := fresh(t, kubepeer.Shared(t))
	worker, admin := s.open(t, "worker"), s.open(t, "admin")
	add(t, worker, "job", 1, 1)
	s.send(t, http.MethodDelete, "/api/v1/namespaces/"+s.namespace, nil)
	for name, l := range map[string]*Ledger{"worker": worker, "admin": admin} {
		var err error
		for seq, ctx := int64(2), within(t); (err == nil || errors.Is(err, store.ErrConflict)) && ctx.Err() == nil; seq++ {
			err = l.Append(ctx, storetest.Grant("job", seq))
		}
		if !errors.Is(err, store.ErrRefused) || !errors.Is(err, store.ErrNotStored) {
			t.Errorf("Append() by the %s = %v, want that it is refused", name, err)
		}
	}
	if f := examined(t, admin)[store.CheckExpiry]; f.Level != store.LevelFail || f.Remedy == "" {
		t.Errorf("Examine() says %+v of it", f)
	}
}

func TestAMissingNamespaceIsCreatedByInit(t *testing.T) {
	t.Parallel()
	kubeconfig := kubepeer.Shared(t)
	l := opened(t, Options{URI: uri("not-there-yet", kubeconfig, "admin")})
	if err := l.Append(within(t), storetest.Grant("job", 1)); !errors.Is(err, store.ErrMissing) || !errors.Is(err, store.ErrNotStored) {
		t.Errorf("Append() = %v, want ErrMissing", err)
	}
	if f := examined(t, l)[store.CheckLedger]; f.Level != store.LevelFail || f.Remedy == "" {
		t.Errorf("Examine() says %+v of it", f)
	}
	for range 2 {
		must(t, "Init()", l.Init(within(t)))
	}
	add(t, l, "job", 1, 1)
}

func TestARecordThatIsDeletedWithItsOwnerIsRefused(t *testing.T) {
	t.Parallel()
	s := fresh(t, kubepeer.Shared(t))
	l := s.open(t, "worker")
	add(t, l, "job", 1, 1)
	s.send(t, http.MethodDelete, s.admin.path(parse(storekit.RecordName("job", 1)).name()), nil)
	m := map[string]any{"metadata": map[string]any{
		"name": parse(storekit.RecordName("job", 1)).name(), "labels": parse(storekit.RecordName("job", 1)).labels(),
		"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "worker-0", "uid": "00000000-0000-0000-0000-000000000001"}},
	}}
	s.send(t, http.MethodPost, s.admin.path(""), m)
	if _, _, err := l.Tail(within(t), "job", 1); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "worker-0") {
		t.Errorf("Tail() = %v, want that it is refused", err)
	}
	if _, err := l.Get(within(t), "job", 1); !errors.Is(err, store.ErrRefused) {
		t.Errorf("Get() = %v, want that it is refused", err)
	}
	if f := examined(t, l)[store.CheckExpiry]; f.Level != store.LevelFail || f.Remedy == "" {
		t.Errorf("Examine() says %+v of it", f)
	}
}

// all are the checks of an examination.
var all = []string{
	store.CheckConnection, store.CheckTLS, store.CheckLedger, store.CheckExpiry, CheckOrder, CheckQuota, store.CheckConstraints,
	store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster, store.CheckServerClocks,
}

func TestRightsAreFoundOutWithoutStoring(t *testing.T) {
	t.Parallel()
	s := fresh(t, kubepeer.Shared(t))
	ok, skip, warn, fail := store.LevelOK, store.LevelSkip, store.LevelWarn, store.LevelFail
	for user, c := range map[string]struct {
		rights error
		levels []store.Level // in the order of all
	}{
		"admin":    {nil, []store.Level{ok, ok, ok, ok, ok, ok, ok, ok, ok, ok, ok, skip}},
		"worker":   {nil, []store.Level{ok, ok, skip, ok, ok, skip, ok, ok, ok, ok, ok, skip}},
		"reader":   {store.ErrDenied, []store.Level{ok, ok, skip, ok, ok, skip, skip, ok, fail, warn, warn, skip}},
		"stranger": {store.ErrDenied, []store.Level{fail, ok, skip, skip, skip, skip, skip, skip, skip, skip, skip, skip}},
	} {
		l := s.open(t, user)
		if err := l.CheckRights(within(t)); !errors.Is(err, c.rights) || err != nil && !strings.Contains(err.Error(), "configmaps") {
			t.Errorf("CheckRights() of the %s = %v, want %v", user, err, c.rights)
		}
		found := examined(t, l)
		for i, check := range all {
			if user == "stranger" && found[store.CheckConnection].Level == ok {
				break // It may see the version, by the server's default rights.
			}
			if f := found[check]; f.Level != c.levels[i] || (f.Level == fail || f.Level == warn) && f.Remedy == "" {
				t.Errorf("Examine() of the %s says %+v of %s, want %s", user, f, check, c.levels[i])
			}
		}
		if len(found) != len(all) {
			t.Errorf("Examine() of the %s makes %d checks, want %d", user, len(found), len(all))
		}
	}
	n := 0
	if err := s.admin.List(within(t), recordFolder, "", 0, func(storekit.Object) bool { n++; return true }); err != nil || n > 0 {
		t.Errorf("there are %d records, %v, want none", n, err)
	}
	wrong := opened(t, Options{URI: "k8s:" + s.namespace, Config: &rest.Config{Host: s.admin.base, BearerToken: canary, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}})
	if err := wrong.Append(within(t), storetest.Grant("job", 1)); !errors.Is(err, store.ErrDenied) || !errors.Is(err, store.ErrNotStored) || strings.Contains(err.Error(), canary) {
		t.Errorf("Append() with a wrong token = %v, want ErrDenied", err)
	}
	if f := examined(t, wrong)[store.CheckTLS]; f.Level != store.LevelWarn {
		t.Errorf("Examine() says %+v of TLS", f)
	}
}

func TestAWatchWithoutItsRightIsOfNoUse(t *testing.T) {
	t.Parallel()
	s := fresh(t, kubepeer.Shared(t))
	if err := s.open(t, "reader").Watch(within(t), func(string) {}); !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, store.ErrDenied) {
		t.Errorf("Watch() = %v, want that it is unsupported", err)
	}
}
