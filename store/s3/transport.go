package s3

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/slotlease/slotlease/store/storekit"
)

// headerDate is when a request was signed.
const headerDate = "X-Amz-Date"

// amzDate is the form of headerDate.
const amzDate = "20060102T150405Z"

// wire sends the requests of a ledger, and takes the service's time from the replies.
type wire struct{ ledger *Ledger }

func (w wire) Do(req *http.Request) (*http.Response, error) {
	reply, err := w.ledger.transport.Do(req)
	if err != nil {
		return nil, err
	}
	if reply.Request == nil {
		reply.Request = req
	}
	w.ledger.Hear(req.Context(), reply)
	return reply, nil
}

// signer signs requests by the service's own time, as far as it is known.
type signer struct{ ledger *Ledger }

// newV4 is a signer that has no keys yet. It keeps what it has made of a key by the id, even if the secret is another.
func newV4() *v4.Signer {
	return v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
}

func (s signer) SignHTTP(ctx context.Context, credentials aws.Credentials, r *http.Request, payloadHash, service, region string, _ time.Time, options ...func(*v4.SignerOptions)) error {
	return s.ledger.v4.Load().SignHTTP(ctx, credentials, r, payloadHash, service, region, s.ledger.Date(), options...)
}

// renew forgets keys that the service doesn't accept, so that the next request asks for them again.
func (l *Ledger) renew(err error) {
	if code := codeOf(err); !denied[code] && code != "SignatureDoesNotMatch" {
		return
	}
	l.v4.Store(newV4())
	if l.cache != nil {
		l.cache.Invalidate()
	}
}

// ask sends a request, and once more if it was dated wrong.
func ask[T any](l *Ledger, send func() (T, error)) (T, error) {
	v, err := storekit.AskOnce(l.Bucket, send)
	l.renew(err)
	return v, err
}

// insist is ask for what may be asked again: while the service fails (500, 502), it tries again, a little later each time.
func insist[T any](ctx context.Context, l *Ledger, send func() (T, error)) (T, error) {
	for n := 1; ; n++ {
		v, err := ask(l, send)
		if status := statusOf(err); n == asked || status != http.StatusInternalServerError && status != http.StatusBadGateway || !storekit.Pause(ctx, l.clock, time.Duration(n)*contention) {
			return v, err
		}
	}
}
