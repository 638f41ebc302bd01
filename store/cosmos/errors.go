package cosmos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
	"github.com/slotlease/slotlease/store/storekit"
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

// maxMessage bounds the shown part of a reply, in bytes.
const maxMessage = 300

// meaning gives an error its meaning for a ledger. After an error without a sentinel
// the outcome is unknown, above all for an append: time-outs (408 among them), lost
// connections, 5xx, and a region that doesn't take writes at the moment.
func (l *Ledger) meaning(err error) storekit.Meaning {
	m := storekit.Meaning{Is: sentinel(err), RetryAfter: retryAfter(err)}
	r, answered := errors.AsType[*azcore.ResponseError](err)
	switch {
	case errors.Is(m.Is, store.ErrDenied) && l.keyed:
		m.Remedy = "check the account's key (" + KeyVariable + " or " + ConnectionVariable + "), and its firewall"
	case errors.Is(m.Is, store.ErrDenied):
		m.Remedy = "set " + KeyVariable + " or " + ConnectionVariable + ", or sign in (az login); an identity needs a role on the account " +
			"(leasectl init --print shows it), and can't create containers"
	case errors.Is(m.Is, store.ErrThrottled):
		m.Remedy = "again in a moment; if it lasts, the container needs more throughput (leasectl plan shows how much workers use)"
	case m.Is != nil:
	case answered && (r.StatusCode >= http.StatusInternalServerError || r.StatusCode == http.StatusRequestTimeout):
		m.Remedy = "again in a moment: the server answers, but can't serve now; if it lasts, look at its health"
	case !answered && storekit.OfCertificate(err, "") == "":
		m.Remedy = "check the name of the account, and that its network lets this machine in"
	}
	return m
}

// explained is an error as it may be shown: a reply in a line, since the SDK's own text has many, of headers and
// content. Its causes are the error and what was hidden from the SDK.
type explained struct {
	text   string
	causes []error
}

func (e explained) Error() string   { return e.text }
func (e explained) Unwrap() []error { return e.causes }

// explain is an error as it may be shown, but for secrets.
func explain(err error) error {
	if err == nil {
		return nil
	}
	e := explained{err.Error(), []error{err}}
	if r, ok := errors.AsType[*azcore.ResponseError](err); ok && r.RawResponse != nil {
		e.text = strings.Replace(e.text, r.Error(), describe(r.RawResponse), 1)
	}
	if x, ok := errors.AsType[*exchangeError](err); ok {
		e.causes = append(e.causes, x.cause)
	}
	if t, ok := errors.AsType[*tokenError](err); ok {
		e.causes = append(e.causes, t.cause)
	}
	return e
}

// sentinel is that of package store which fits an error, or nil.
func sentinel(err error) error {
	if t, ok := errors.AsType[*tokenError](err); ok {
		return t.meaning()
	}
	r := replyOf(err)
	if r == nil {
		return nil
	}
	switch substatus := r.Header.Get(headerSubstatus); r.StatusCode {
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
		if substatus != substatusSessionNotAvailable {
			return store.ErrMissing
		}
	case http.StatusTooManyRequests:
		return store.ErrThrottled
	}
	return nil
}

// dubious reports whether an error may come from a failover, or from a change of the
// account or container, so that the last check of them may no longer hold.
func dubious(err error) bool {
	if _, ok := errors.AsType[*exchangeError](err); ok {
		return true
	}
	if _, ok := errors.AsType[asideError](err); ok {
		return false
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

// isStatus reports whether the reply has a status. ErrorCode isn't looked at: its
// texts differ between servers.
func isStatus(err error, status int) bool {
	r, ok := errors.AsType[*azcore.ResponseError](err)
	return ok && r.StatusCode == status
}

// replyOf is the reply that an error comes from, or nil.
func replyOf(err error) *http.Response {
	if r, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return r.RawResponse
	}
	return nil
}

// ownerMissing reports whether a 404 means the container rather than the item, or a
// region that lags.
func ownerMissing(err error) bool {
	r := replyOf(err)
	return r != nil && !aboutItem(r)
}

// aboutItem reports whether a 404 means the item.
func aboutItem(reply *http.Response) bool {
	return !slices.Contains([]string{substatusOwnerMissing, substatusSessionNotAvailable}, reply.Header.Get(headerSubstatus))
}

// isAnswer reports whether a reply is an answer, if not the one that was hoped for: the key is taken, or there is no item.
func isAnswer(reply *http.Response) bool {
	return reply.StatusCode == http.StatusConflict || reply.StatusCode == http.StatusNotFound && aboutItem(reply)
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
		text += ": " + fault.Cut(fault.OneLine(content.Message), maxMessage)
	}
	return text
}
