package azblob

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/azuritepeer"
)

// hooked is a transport that may answer in place of the server: hook returns nil for requests that are to go on.
type hooked struct {
	http.Client
	hook func(req *http.Request) *http.Response
	sent atomic.Int64
}

func (h *hooked) Do(req *http.Request) (*http.Response, error) {
	h.sent.Add(1)
	if h.hook != nil {
		if reply := h.hook(req); reply != nil {
			reply.Request = req
			return reply, nil
		}
	}
	return h.Client.Do(req)
}

// reply is one with a body, headers in pairs, and the date.
func reply(status int, body string, headers ...string) *http.Response {
	r := &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
	r.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("Content-Type", "application/xml")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// fault is a reply with one of the service's errors.
func fault(status int, code string, headers ...string) *http.Response {
	return reply(status, `<?xml version="1.0" encoding="utf-8"?><Error><Code>`+code+`</Code><Message>a message</Message></Error>`, append(headers, "X-Ms-Error-Code", code)...)
}

// conditional reports whether a request is a put with If-None-Match.
func conditional(req *http.Request) bool {
	return req.Method == http.MethodPut && req.Header.Get("If-None-Match") == "*"
}

// ofContainer and ofAccount report whether a request asks for the properties of either.
func ofContainer(req *http.Request) bool {
	return req.Method == http.MethodGet && req.URL.Query().Get("restype") == "container" && !req.URL.Query().Has("comp")
}

func ofAccount(req *http.Request) bool { return req.URL.Query().Get("restype") == "account" }

// hookedLedger is one in a container of its own, on the shared server, which is there.
func hookedLedger(t *testing.T, o Options, hook func(req *http.Request) *http.Response) (*Ledger, *hooked) {
	t.Helper()
	endpoint := azuritepeer.Shared(t)
	name := newContainer()
	ready(t, Options{URI: uriOf(endpoint, name+"/jobs")})
	h := &hooked{hook: hook}
	o.URI, o.Transport = uriOf(endpoint, name+"/jobs"), h
	return opened(t, o), h
}
