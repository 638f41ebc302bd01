package azblob

import (
	"net/http"
	"strings"
	"testing"
)

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
		must(t, "Init() with "+name, l.Init(within(t)))
		if got := l.Warning(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("Warning() with %s = %q, want %q", name, got, c.want)
		}
	}
}
