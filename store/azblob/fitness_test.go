package azblob

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestAServiceThatIgnoresIfNoneMatchIsRefused(t *testing.T) {
	t.Parallel()
	l, _ := hookedLedger(t, Options{}, func(req *http.Request) *http.Response {
		if conditional(req) {
			return reply(201, "")
		}
		return nil
	})
	err := l.Append(within(t, patience), storetest.Grant("job", 1))
	documenttest.Sentinel(t, "Append()", err, store.ErrRefused)
	documenttest.Says(t, "Append()", err, store.ErrNotStored, "ignores If-None-Match: it stored two blobs under one name")
	documenttest.Is(t, "Init()", l.Init(within(t, patience)), store.ErrRefused)
}

func TestWhetherIfNoneMatchIsHeededIsTriedOnceAndByNobodyWhoOnlyReads(t *testing.T) {
	t.Parallel()
	puts := 0
	count := func(req *http.Request) *http.Response {
		if req.Method == http.MethodPut {
			puts++
		}
		return nil
	}
	l, _ := hookedLedger(t, Options{}, count)
	for range 3 {
		must(t, "Init()", l.Init(within(t, patience)))
	}
	documenttest.Equal(t, "puts of three Init()", puts, 1)
	puts = 0
	l, _ = hookedLedger(t, Options{ReadOnly: true}, count)
	_, err := l.WorkerTypes(within(t, patience))
	must(t, "Init() and WorkerTypes()", errors.Join(l.Init(within(t, patience)), err))
	documenttest.Equal(t, "puts of a handle that only reads", puts, 0)
}

func TestASecondRegionAndAPolicyAreWarnings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook func(req *http.Request) *http.Response
		want string
	}{
		"nothing wrong": {func(*http.Request) *http.Response { return nil }, "a failover loses the newest records"}, // Azurite says Standard_RAGRS.
		"one region": {func(req *http.Request) *http.Response {
			if ofAccount(req) {
				return reply(200, "", "X-Ms-Sku-Name", "Standard_ZRS", "X-Ms-Account-Kind", "StorageV2")
			}
			return nil
		}, ""},
		"no right to ask": {func(req *http.Request) *http.Response {
			if ofAccount(req) || ofContainer(req) {
				return fault(403, "AuthorizationFailure")
			}
			return nil
		}, ""},
		"a policy": {func(req *http.Request) *http.Response {
			switch {
			case ofAccount(req):
				return reply(200, "", "X-Ms-Sku-Name", "Standard_LRS")
			case ofContainer(req):
				return reply(200, "", "X-Ms-Has-Immutability-Policy", "true", "X-Ms-Has-Legal-Hold", "false")
			}
			return nil
		}, "has an immutability policy or a legal hold: records can't be trimmed"},
	} {
		l, _ := hookedLedger(t, Options{}, c.hook)
		must(t, "Init() with "+name, l.Init(within(t, patience)))
		if got := l.Warning(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("Warning() with %s = %q, want %q", name, got, c.want)
		}
	}
}
