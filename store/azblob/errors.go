package azblob

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// meaning is what an error of the SDK means. The codes are those of Microsoft's lists,
// https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes and …/common-rest-api-error-codes.
// What isn't known here leaves an append unknown: above all 5xx, and the lack of a reply.
func (l *Ledger) meaning(err error) storekit.Meaning {
	if e, ok := errors.AsType[noToken](err); ok {
		return storekit.Meaning{Is: store.ErrDenied, NotStored: true, Text: e.Error()}
	}
	code, status := codeOf(err), statusOf(err)
	text := describe(err, code, status)
	switch {
	case status == http.StatusConflict && code == "BlobAlreadyExists", status == http.StatusPreconditionFailed && code == "ConditionNotMet":
		return storekit.Meaning{Is: store.ErrConflict, Sound: true, Text: text}
	case code == "ContainerNotFound":
		return storekit.Meaning{Is: store.ErrMissing, NotStored: true, Text: "there is no container " + l.address.container}
	case code == "ContainerBeingDeleted":
		return storekit.Meaning{Is: store.ErrMissing, NotStored: true, Text: fmt.Sprintf("the container %s is being deleted", l.address.container)}
	case code == "BlobImmutableDueToPolicy":
		return storekit.Meaning{Is: store.ErrDenied, NotStored: true, Text: text}
	case code == "AccountIsDisabled", status == http.StatusUnauthorized, status == http.StatusForbidden:
		return storekit.Meaning{Is: store.ErrDenied, NotStored: true, Text: text}
	case status == http.StatusTooManyRequests, code == "ServerBusy":
		return storekit.Meaning{Is: store.ErrThrottled, RetryAfter: storekit.RetryAfter(replyOf(err)), Sound: true, Text: text}
	}
	return storekit.Meaning{Text: text}
}

// describe is the code, the status and the message of a reply; empty if there was none.
func describe(err error, code string, status int) string {
	if status == 0 {
		return ""
	}
	text := fmt.Sprintf("%d %s", status, code)
	if code == "" {
		text = fmt.Sprintf("%d %s", status, http.StatusText(status))
	}
	body, readErr := runtime.Payload(replyOf(err))
	var content struct {
		Message string
	}
	if readErr == nil && xml.Unmarshal(body, &content) == nil && content.Message != "" {
		text += ": " + content.Message
	}
	return text
}

// codeOf is the code of the service's error, or empty.
func codeOf(err error) string {
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return e.ErrorCode
	}
	return ""
}

// statusOf is the status of the reply that an error comes from, or 0.
func statusOf(err error) int {
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return e.StatusCode
	}
	return 0
}

// replyOf is the reply that an error comes from, or nil.
func replyOf(err error) *http.Response {
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return e.RawResponse
	}
	return nil
}
