package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/slotlease/slotlease/store"
)

// statusRetryWith is Azure's own: two writes met, send it again.
const statusRetryWith = 449

// Sub-statuses of Azure Cosmos DB. Each has its meaning only beside its status.
const (
	// A 403 of a region that takes no writes: a failover is under way.
	substatusWriteForbidden = "3"
	// A 403 of a region that was taken off the account.
	substatusAccountNotFound = "1008"
	// A 403 of a logical partition that is full.
	substatusPartitionFull = "1014"
	// A 404 of a region that hasn't seen the session yet.
	substatusSessionNotAvailable = "1002"
	// A 404 of a database or container.
	substatusOwnerMissing = "1003"
)

// maxText bounds the text of one error, maxMessage what is shown of a reply.
const (
	maxText    = 600
	maxMessage = 300
)

// shownError has the text of an error as it may be shown (one line, bounded,
// without secrets), and the causes for errors.Is and errors.As.
type shownError struct {
	text   string
	causes []error
}

func (e *shownError) Error() string   { return e.text }
func (e *shownError) Unwrap() []error { return e.causes }

// cancelledError is an error because of a cancellation by this package. It is
// none of the caller's, so errors.Is doesn't find it.
type cancelledError struct{ error }

func (e cancelledError) As(target any) bool { return errors.As(e.error, target) }

// failed is the error of an operation on a key.
func (l *Ledger) failed(ctx context.Context, op, key string, err error) error {
	if err == nil {
		return nil
	}
	if key != "" {
		op += " " + key
	}
	return fmt.Errorf("cosmos: %s: %w", op, l.classify(ctx, err))
}

// classify says what an error means to a ledger. One that fits no sentinel means
// "unknown", above all for an append: time-outs (408 among them), lost
// connections, 5xx, and a region that takes no writes just now.
func (l *Ledger) classify(ctx context.Context, err error) error {
	e := l.explain(err)
	name := func(cause error) {
		e.causes = append(e.causes, cause)
		if !strings.HasPrefix(e.text, cause.Error()) {
			e.text = cause.Error() + ": " + e.text
		}
	}
	if errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded) {
		// Of a request's context, which says no more than the caller's own.
		e.causes = []error{cancelledError{errors.Join(e.causes...)}}
	}
	switch ended := ctx.Err(); {
	case ended != nil:
		name(ended)
	case l.closed.Load() && !told(err):
		name(store.ErrClosed)
	}
	switch sentinel := meaning(err); {
	case sentinel == nil || errors.Is(e, sentinel):
	case errors.Is(sentinel, store.ErrThrottled):
		return &store.ThrottledError{RetryAfter: retryAfter(err), Err: e}
	default:
		name(sentinel)
	}
	return e
}

// told says whether an error came of a reply.
func told(err error) bool {
	_, ok := errors.AsType[*azcore.ResponseError](err)
	return ok
}

// explain is an error as it may be shown. A request that got no reply shows its
// cause, which was hidden from the SDK.
func (l *Ledger) explain(err error) *shownError {
	text := err.Error()
	causes := []error{err}
	if r, ok := errors.AsType[*azcore.ResponseError](err); ok && r.RawResponse != nil {
		// The SDK's own text has many lines, of headers and content.
		text = strings.Replace(text, r.Error(), describe(r.RawResponse), 1)
	}
	if x, ok := errors.AsType[*exchangeError](err); ok {
		causes = append(causes, x.cause)
	}
	if t, ok := errors.AsType[*tokenError](err); ok {
		causes = append(causes, t.cause)
	}
	return &shownError{text: oneLine(l.secrets.scrub(text)), causes: causes}
}

// meaning is the sentinel that fits an error, or nil.
func meaning(err error) error {
	for _, found := range []error{store.ErrRefused, store.ErrMissing, store.ErrClosed} {
		if errors.Is(err, found) {
			return found
		}
	}
	if t, ok := errors.AsType[*tokenError](err); ok {
		return t.meaning()
	}
	r, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || r.RawResponse == nil {
		return nil
	}
	switch substatus := r.RawResponse.Header.Get(headerSubstatus); r.StatusCode {
	case http.StatusConflict:
		return store.ErrConflict
	case http.StatusUnauthorized:
		return store.ErrDenied
	case http.StatusForbidden:
		if !slices.Contains([]string{substatusWriteForbidden, substatusAccountNotFound, substatusPartitionFull}, substatus) {
			return store.ErrDenied
		}
	case http.StatusNotFound:
		// Get has dealt with items that aren't there.
		if substatus != substatusSessionNotAvailable && !errors.Is(err, store.ErrNotFound) {
			return store.ErrMissing
		}
	case http.StatusTooManyRequests:
		return store.ErrThrottled
	}
	return nil
}

// dubious says whether an error may come of a failover, or of a change to account
// or container: what was found out about them is in doubt.
func dubious(err error) bool {
	if _, ok := errors.AsType[*exchangeError](err); ok {
		return true
	}
	r, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return false
	}
	switch r.StatusCode {
	case http.StatusConflict, http.StatusTooManyRequests, statusRetryWith, http.StatusRequestTimeout:
		return false
	case http.StatusNotFound:
		return !errors.Is(err, store.ErrNotFound)
	}
	return true
}

// isStatus says whether the reply has a status. ErrorCode isn't looked at: its
// texts differ between servers.
func isStatus(err error, status int) bool {
	r, ok := errors.AsType[*azcore.ResponseError](err)
	return ok && r.StatusCode == status
}

// ownerMissing says whether a 404 is of the container rather than of the item, or
// of a region that lags behind.
func ownerMissing(err error) bool {
	r, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || r.RawResponse == nil {
		return false
	}
	substatus := r.RawResponse.Header.Get(headerSubstatus)
	return substatus == substatusOwnerMissing || substatus == substatusSessionNotAvailable
}

// describe is a reply in a line: its status and the message in its content, which
// can still be read afterwards.
func describe(reply *http.Response) string {
	text := strconv.Itoa(reply.StatusCode)
	if name := http.StatusText(reply.StatusCode); name != "" {
		text += " " + name
	}
	if substatus := reply.Header.Get(headerSubstatus); substatus != "" && substatus != "0" {
		text += fmt.Sprintf(", substatus %.10s", substatus)
	}
	body, err := io.ReadAll(reply.Body)
	setBody(reply, body)
	var content struct {
		Message string `json:"message"`
	}
	if err == nil && json.Unmarshal(body, &content) == nil && content.Message != "" {
		message := oneLine(content.Message)
		if len(message) > maxMessage {
			message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
		}
		text += ": " + message
	}
	return text
}

// oneLine makes a text fit for a log line.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}

// scrubber knows texts that must not be shown.
type scrubber []string

// add takes in a secret, in all the forms in which a message may hold it.
func (s *scrubber) add(secret string) {
	if secret == "" {
		return
	}
	quoted := strconv.Quote(secret)
	for _, form := range []string{secret, quoted[1 : len(quoted)-1], url.QueryEscape(secret), url.PathEscape(secret), strings.TrimRight(secret, "=")} {
		if form != "" && !slices.Contains(*s, form) {
			*s = append(*s, form)
		}
	}
	// A long form goes before one that it contains.
	slices.SortStableFunc(*s, func(a, b string) int { return len(b) - len(a) })
}

// scrub replaces the secrets in a message.
func (s scrubber) scrub(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}
