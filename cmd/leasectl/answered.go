package main

import (
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/store"
)

// tryFailed is what to do about an operation that failed: another thing where a
// server has answered than where none was reached.
func (t target) tryFailed(err error) string {
	switch {
	case errors.Is(err, store.ErrThrottled) && t.scheme == "cosmos":
		return "again in a moment; if it lasts, the container needs more throughput (leasectl plan tells how much workers use)"
	case errors.Is(err, store.ErrThrottled):
		return "again in a moment; if it lasts, the server has too much to do"
	case t.scheme == "sqlite":
		return ""
	case ailing(err):
		return "again in a moment: the server answers, but can't serve now; if it lasts, look at its health"
	case answered(err):
		return "" // It says itself what is wrong.
	case t.scheme == "cosmos":
		return "check the name of the account, and that its network lets this machine in"
	}
	return "check that the server runs and that host and port are right"
}

// ailing reports that a server, or what stands before it, answered that it can't
// serve now.
func ailing(err error) bool {
	r, ok := errors.AsType[*azcore.ResponseError](err)
	return ok && (r.StatusCode >= http.StatusInternalServerError || r.StatusCode == http.StatusRequestTimeout)
}

// answered reports that an error is a server's answer.
func answered(err error) bool {
	if _, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return true
	}
	_, ok := errors.AsType[mongodriver.ServerError](err)
	return ok && !mongodriver.IsNetworkError(err) && !mongodriver.IsTimeout(err)
}
