package azblob

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/slotlease/slotlease/store/storekit"
)

// headerDate is the date that a request is signed with. The SDK looks it up as signedDate, and else sets its own.
const (
	headerDate = "X-Ms-Date"
	signedDate = "x-ms-date"
)

// wire sends the requests of a ledger, and takes the service's time from the replies. It adds the shared access
// signature, so that no error of the SDK has it.
type wire struct {
	ledger *Ledger
	sas    string
}

func (w wire) Do(req *http.Request) (*http.Response, error) {
	if date, ok := req.Header[signedDate]; ok { //nolint:staticcheck // as the SDK looks it up
		delete(req.Header, signedDate)
		req.Header[headerDate] = date
	}
	sent := req
	if w.sas != "" {
		sent = req.Clone(req.Context())
		if sent.URL.RawQuery != "" {
			sent.URL.RawQuery += "&"
		}
		sent.URL.RawQuery += w.sas
	}
	reply, err := w.ledger.transport.Do(sent)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the address
		}
		return nil, err
	}
	reply.Request = req
	w.ledger.Hear(req.Context(), reply)
	return reply, nil
}

// dated sets the date of a request before it is signed.
type dated struct{ ledger *Ledger }

func (p dated) Do(req *policy.Request) (*http.Response, error) {
	req.Raw().Header[signedDate] = []string{p.ledger.Date().Format(http.TimeFormat)}
	return req.Next()
}

// ask sends a request, and once more if it was dated wrong. By the application's client, it is sent once: that would try
// again by itself, and dates by its own clock.
func ask[T any](ctx context.Context, l *Ledger, send func(ctx context.Context) (T, error)) (T, error) {
	if l.lent {
		var reply *http.Response
		v, err := send(policy.WithCaptureResponse(policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1}), &reply))
		if reply != nil && reply.Request != nil {
			l.Hear(ctx, reply)
		}
		return v, err
	}
	return storekit.AskOnce(l.Bucket, func() (T, error) { return send(ctx) })
}
