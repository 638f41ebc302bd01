package cosmos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The headers of Azure Cosmos DB that are read here.
const (
	headerCharge      = "X-Ms-Request-Charge"
	headerSubstatus   = "X-Ms-Substatus"
	headerRetryAfter  = "X-Ms-Retry-After-Ms"
	headerRequestDate = "X-Ms-Date"
)

// maxBody bounds the size of one reply. A page of a query has at most 4 MB.
const maxBody = 16 << 20

// exchangeError is the error of a request that got no reply. It hides its cause from
// errors.As: if the SDK recognised the cause, it would sleep and send the request
// again. The caller knows the deadline and decides whether to retry.
type exchangeError struct{ cause error }

func (e *exchangeError) Error() string { return e.cause.Error() }

// Do sends a request of the SDK. All requests pass here: those of operations, and the
// SDK's own for the account's properties.
func (c *conn) Do(req *http.Request) (*http.Response, error) {
	ctx, release := c.bounded(req.Context())
	defer release()
	if a := c.account.Load(); a != nil && !isAccount(req) && !c.examines {
		// The SDK may have learned during an operation that writes now go to several
		// regions.
		if err := c.ledger.judge(*a); err != nil {
			return nil, &exchangeError{err}
		}
	}
	reply, err := c.ledger.transport.Do(req.WithContext(ctx))
	if err == nil {
		err = readBody(reply)
	}
	if err != nil {
		storekit.Trouble(ctx, err.Error())
		return nil, &exchangeError{err}
	}
	if reply.Request == nil {
		reply.Request = req
	}
	if units, err := strconv.ParseFloat(reply.Header.Get(headerCharge), 64); err == nil && units > 0 && units < 1e9 {
		store.Charge(ctx, units)
	}
	c.ledger.dating.Learn(reply)
	if reply.StatusCode >= http.StatusBadRequest && !isAnswer(reply) {
		storekit.Trouble(ctx, describe(reply))
	}
	if isAccount(req) {
		return c.judgeAccount(reply)
	}
	storekit.Note(ctx, storekit.Dates{Skew: c.ledger.skew, Server: req.URL.Host}.Stamp(reply))
	return reply, nil
}

// bounded is the context of a request. It ends with the ledger, and with a connection
// that isn't used after all, because the SDK's own requests don't end with an operation.
func (c *conn) bounded(ctx context.Context) (bounded context.Context, release func()) {
	bounded, cancel := context.WithCancel(ctx)
	closed := context.AfterFunc(c.ledger.runner.Life(), cancel)
	ended := context.AfterFunc(c.life, cancel)
	return bounded, func() {
		closed()
		ended()
		cancel()
	}
}

// isAccount reports whether a request is for the account's properties.
func isAccount(req *http.Request) bool {
	return req.Method == http.MethodGet && (req.URL.Path == "" || req.URL.Path == "/")
}

// readBody reads a reply to its end, so that the request is over.
func readBody(reply *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxBody+1))
	_ = reply.Body.Close()
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("the reply has more than %d bytes", maxBody)
	}
	setBody(reply, body)
	return err
}

func setBody(reply *http.Response, body []byte) {
	reply.Body = io.NopCloser(bytes.NewReader(body))
	reply.ContentLength = int64(len(body))
}
