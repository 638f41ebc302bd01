package kubernetes

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// reasonExists is the reason of a create that found its name taken.
const reasonExists = metav1.StatusReasonAlreadyExists

// statusError is a reply that isn't a success.
type statusError struct {
	code   int
	reason metav1.StatusReason
	// kind is that of the object which the reply is about, such as namespaces.
	kind       string
	causes     []metav1.StatusCause
	message    string
	retryAfter time.Duration
	asked      bool // There was a Retry-After.
}

// refusal is the error of a reply.
func refusal(reply *http.Response, text []byte) error {
	e := &statusError{code: reply.StatusCode}
	var s metav1.Status
	if json.Unmarshal(text, &s) == nil && s.Kind == "Status" {
		e.reason, e.message = s.Reason, s.Message
		if s.Details != nil {
			e.kind, e.causes = s.Details.Kind, s.Details.Causes
		}
	} else if strings.HasPrefix(reply.Header.Get("Content-Type"), "text/plain") {
		e.message = string(text)
	}
	if seconds, err := strconv.ParseUint(reply.Header.Get("Retry-After"), 10, 16); err == nil {
		e.retryAfter, e.asked = time.Duration(seconds)*time.Second, true
	}
	return e
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("%d %s", e.code, http.StatusText(e.code))
	if e.message != "" {
		text += ": " + storekit.OneLine(e.message)
	}
	return text
}

// terminating reports whether the namespace is being deleted.
func (e *statusError) terminating() bool {
	for _, c := range e.causes {
		if c.Type == "NamespaceTerminating" {
			return true
		}
	}
	return false
}

// meaning is what an error means. The codes are those of Kubernetes' API conventions, "HTTP Status codes"; the API server
// gives those below before it writes. Of 409 without AlreadyExists, 5xx and lost connections the outcome is unknown: a
// time-out (504) may come after the write.
func meaning(err error) storekit.Meaning {
	s, ok := errors.AsType[*statusError](err)
	if !ok {
		return storekit.Meaning{NotStored: unconnected(err)}
	}
	refused := storekit.Meaning{NotStored: true, Sound: true}
	switch s.code {
	case http.StatusUnauthorized:
		refused.Is = store.ErrDenied
	case http.StatusForbidden:
		switch {
		case s.terminating():
			// The namespace's lifecycle admission. It counts at once, as a flaw does.
			refused.Is, refused.Sound = store.ErrRefused, false
		case strings.Contains(s.message, "exceeded quota"):
			// A ResourceQuota, of which there is no code.
		default:
			refused.Is = store.ErrDenied
		}
	case http.StatusNotFound:
		if s.kind == "namespaces" {
			refused.Is, refused.Sound = store.ErrMissing, false
		}
	case http.StatusTooManyRequests:
		// API priority and fairness, or the limit of requests in flight, before the request is looked at.
		refused.Is, refused.RetryAfter = store.ErrThrottled, s.retryAfter
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
	case http.StatusServiceUnavailable:
		if s.asked {
			return storekit.Meaning{Is: store.ErrThrottled, RetryAfter: s.retryAfter}
		}
		return storekit.Meaning{}
	default:
		if strings.Contains(s.message, "failed calling webhook") { // Whose certificate isn't that of the way to the server.
			return storekit.Meaning{Remedy: "mend the webhook that the API server calls, or have it leave out the namespace"}
		}
		return storekit.Meaning{}
	}
	return refused
}

// unconnected reports whether there was no connection, so that nothing was sent.
func unconnected(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
