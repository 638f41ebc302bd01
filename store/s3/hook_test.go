package s3

import (
	"net/http"
	"testing"

	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/s3peer"
)

type hooked = documenttest.Hooked

var (
	reply       = documenttest.Reply
	conditional = documenttest.Conditional
	fault       = documenttest.Fault
)

// asks reports whether a request asks for a part of the bucket's settings.
func asks(req *http.Request, setting string) bool {
	return req.Method == http.MethodGet && req.URL.Query().Has(setting)
}

// hookedLedger opens a ledger whose requests pass a hook first.
func hookedLedger(t *testing.T, o Options, hook func(req *http.Request) *http.Response) (*Ledger, *hooked) {
	t.Helper()
	h := &hooked{Hook: hook}
	return behind(t, o, h), h
}

// behind is a ledger in a bucket of its own, on the shared server, which is there, behind a transport.
func behind(t *testing.T, o Options, h *hooked) *Ledger {
	t.Helper()
	endpoint := s3peer.Shared(t)
	bucket := newBucket()
	ready(t, Options{URI: uriOf(endpoint, bucket+"/jobs")})
	o.URI, o.Transport = uriOf(endpoint, bucket+"/jobs"), h
	return opened(t, o)
}
