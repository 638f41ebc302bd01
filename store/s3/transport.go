package s3

import (
	"context"
	"io"
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

// maxReply bounds the size of one reply. A list of 1,000 names has less than 3 MB.
const maxReply = 16 << 20

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
	w.ledger.dating.Learn(reply)
	dates := storekit.Dates{Skew: w.ledger.skew, Server: req.URL.Host}
	storekit.Note(req.Context(), dates.Stamp(reply))
	reply.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(reply.Body, maxReply), reply.Body}
	return reply, nil
}

// signer signs requests by the service's own time, as far as it is known.
type signer struct {
	v4     *v4.Signer
	dating *storekit.Dating
}

func newSigner(d *storekit.Dating) signer {
	return signer{v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }), d}
}

func (s signer) SignHTTP(ctx context.Context, credentials aws.Credentials, r *http.Request, payloadHash, service, region string, _ time.Time, options ...func(*v4.SignerOptions)) error {
	return s.v4.SignHTTP(ctx, credentials, r, payloadHash, service, region, s.dating.Now().UTC(), options...)
}

// misdated reports whether an error may come from the date of the request. The next one has a better.
func (l *Ledger) misdated(err error) bool {
	reply := replyOf(err)
	if reply == nil || reply.StatusCode != http.StatusForbidden && reply.StatusCode != http.StatusBadRequest || reply.Request == nil {
		return false
	}
	sent, parseErr := time.Parse(amzDate, reply.Request.Header.Get(headerDate))
	return parseErr == nil && l.dating.Misdated(sent, reply)
}

// ask sends a request, and once more if it was dated wrong.
func ask[T any](l *Ledger, send func() (T, error)) (T, error) {
	v, err := send()
	if err != nil && l.misdated(err) {
		v, err = send()
	}
	return v, err
}

// insist is ask for what may be asked again: while the service fails (500, 502), it tries again, a little later each time.
func insist[T any](ctx context.Context, l *Ledger, send func() (T, error)) (T, error) {
	for n := 1; ; n++ {
		v, err := ask(l, send)
		if status := statusOf(err); n == asked || status != http.StatusInternalServerError && status != http.StatusBadGateway {
			return v, err
		}
		timer := l.clock.Timer(time.Duration(n) * contention)
		select {
		case <-ctx.Done():
			timer.Stop()
			return v, err
		case <-timer.C:
		}
	}
}
