package kubernetes

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// rotating sends the token of now with each request.
type rotating struct {
	http.RoundTripper

	token *atomic.Pointer[string]
}

func (r rotating) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+*r.token.Load())
	return r.RoundTripper.RoundTrip(req)
}

// The server knows the token of now, and no other; a limiter that lets nothing through doesn't matter.
func TestAnApplicationsConfigurationMayRotateItsToken(t *testing.T) {
	t.Parallel()
	var known, sent atomic.Pointer[string]
	first, second := canary, "second-t0ken"
	known.Store(&first)
	sent.Store(&first)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+*known.Load():
			status(http.StatusUnauthorized, "Unauthorized", "")(w, r)
		case strings.HasSuffix(r.URL.Path, "/namespaces/jobs"):
			w.WriteHeader(http.StatusForbidden)
		default:
			body, _ := io.ReadAll(r.Body)
			if r.Method == http.MethodGet {
				body = []byte("{}")
			}
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(s.Close)
	config := &rest.Config{Host: s.URL, BearerToken: "of-before", RateLimiter: flowcontrol.NewFakeNeverRateLimiter(), QPS: -1}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return rotating{next, &sent} })
	l := opened(t, Options{URI: "k8s:jobs", Config: config})
	if err := l.Append(within(t), storetest.Grant("job", 1)); err != nil {
		t.Errorf("Append() = %v", err)
	}
	known.Store(&second)
	if err := l.Append(within(t), storetest.Grant("job", 2)); !errors.Is(err, store.ErrDenied) || !errors.Is(err, store.ErrNotStored) {
		t.Errorf("Append() with the former token = %v, want ErrDenied, and that nothing was stored", err)
	}
	sent.Store(&second)
	if err := l.Append(within(t), storetest.Grant("job", 2)); err != nil {
		t.Errorf("Append() with the new token = %v", err)
	}
}

func TestATransportOfAnotherIsRefused(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Options{URI: "k8s:jobs", Config: &rest.Config{Host: "https://h", Transport: http.DefaultTransport}})
	if err == nil || !strings.Contains(err.Error(), "WrapTransport") {
		t.Errorf("Open() = %v, want an error that names WrapTransport", err)
	}
}
