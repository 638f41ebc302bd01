package httpfence

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/slotlease/slotlease/workerlease/fence"
)

// The headers of requests and refusals. Names are percent-encoded, tokens are decimal.
const (
	HeaderToken  = "Fencing-Token"
	HeaderName   = "Fencing-Name"
	HeaderNewest = "Fencing-Newest" // of refusals only: the highest token seen
)

// Transport adds a fence's name and a token to each request, also to those that follow a
// redirect. It may be used by many goroutines, and serves one lease.
type Transport struct {
	Base  http.RoundTripper // nil is http.DefaultTransport
	Name  string            // of the fence
	Token int64             // of the lease
}

// RoundTrip sends a copy of r with the headers. An invalid name or token is an error, and
// nothing is sent.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := fence.Validate(t.Name, t.Token); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set(HeaderName, url.PathEscape(t.Name))
	r.Header.Set(HeaderToken, strconv.FormatInt(t.Token, 10))
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(r)
}

// Refused returns a [fence.StaleError] if the response is a refusal by [Middleware], and
// nil otherwise. A 409 of the handler itself is none. It leaves the body alone.
func Refused(r *http.Response) error {
	newest := r.Header.Get(HeaderNewest)
	if r.StatusCode != http.StatusConflict || newest == "" {
		return nil
	}
	stale := &fence.StaleError{}
	var err error
	if stale.Name, err = url.PathUnescape(r.Header.Get(HeaderName)); err == nil {
		if stale.Token, err = strconv.ParseInt(r.Header.Get(HeaderToken), 10, 64); err == nil {
			stale.Newest, err = strconv.ParseInt(newest, 10, 64)
		}
	}
	if err != nil {
		return fmt.Errorf("%w; the headers of the refusal can't be read: %w", fence.ErrStale, err)
	}
	return stale
}
