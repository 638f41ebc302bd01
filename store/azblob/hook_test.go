package azblob

import (
	"net/http"
	"testing"

	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
)

type hooked = documenttest.Hooked

var (
	reply       = documenttest.Reply
	conditional = documenttest.Conditional
)

// fault is a reply with one of the service's errors.
func fault(status int, code string, headers ...string) *http.Response {
	return documenttest.Fault(status, code, append(headers, "X-Ms-Error-Code", code)...)
}

// ofContainer and ofAccount report whether a request asks for the properties of either.
func ofContainer(req *http.Request) bool {
	return req.Method == http.MethodGet && req.URL.Query().Get("restype") == "container" && !req.URL.Query().Has("comp")
}

func ofAccount(req *http.Request) bool { return req.URL.Query().Get("restype") == "account" }

// hookedLedger opens a ledger whose requests pass a hook first.
func hookedLedger(t *testing.T, o Options, hook func(req *http.Request) *http.Response) (*Ledger, *hooked) {
	t.Helper()
	h := &hooked{Hook: hook}
	return behind(t, o, h), h
}

// behind is a ledger in a container of its own, on the shared server, which is there, behind a transport.
func behind(t *testing.T, o Options, h *hooked) *Ledger {
	t.Helper()
	endpoint := azuritepeer.Shared(t)
	name := newContainer()
	ready(t, Options{URI: uriOf(endpoint, name+"/jobs")})
	o.URI, o.Transport = uriOf(endpoint, name+"/jobs"), h
	return opened(t, o)
}
