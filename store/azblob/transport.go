package azblob

import (
	"errors"
	"io"
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

// maxReply bounds the size of one reply. A list of 5,000 names has less than 8 MB.
const maxReply = 16 << 20

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
	w.ledger.dating.Learn(reply)
	dates := storekit.Dates{Skew: w.ledger.skew, Server: req.URL.Host}
	storekit.Note(req.Context(), dates.Stamp(reply))
	reply.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(reply.Body, maxReply), reply.Body}
	return reply, nil
}

// dated sets the date of a request before it is signed.
type dated struct{ ledger *Ledger }

func (p dated) Do(req *policy.Request) (*http.Response, error) {
	req.Raw().Header[signedDate] = []string{p.ledger.dating.Now().UTC().Format(http.TimeFormat)}
	return req.Next()
}

// misdated reports whether an error may come from the date of the request. The next one has a better.
func (l *Ledger) misdated(err error) bool {
	reply := replyOf(err)
	if reply == nil || reply.StatusCode != http.StatusForbidden && reply.StatusCode != http.StatusBadRequest || reply.Request == nil {
		return false
	}
	sent, parseErr := http.ParseTime(reply.Request.Header.Get(headerDate))
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
