package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/store"
)

func TestWhatToTryDependsOnWhetherAServerAnswered(t *testing.T) {
	const unreached = "check that the server runs and "
	const wrongAccount = "check the name of the account, "
	status := func(code int) error { return &azcore.ResponseError{StatusCode: code} }
	labelled := func(labels ...string) error {
		return mongodriver.CommandError{Code: 10107, Message: "not primary", Labels: labels}
	}
	for _, c := range []struct {
		name, scheme string
		err          error
		want         string // how the hint begins; none if empty
	}{
		{"nobody answered", "mongodb", errors.New("connection refused"), unreached},
		{"the connection broke", "mongodb", labelled("NetworkError"), unreached},
		{"the time was up", "mongodb", mongodriver.CommandError{Wrapped: context.DeadlineExceeded}, unreached},
		{"the server said no", "mongodb", labelled(), ""},
		{"the server throttles", "mongodb+srv", &store.ThrottledError{Err: labelled()}, "again in a moment; if it lasts, the server has too much"},
		{"nobody answered", "cosmos", errors.New("no such host"), wrongAccount},
		{"the service is down", "cosmos", status(http.StatusServiceUnavailable), "again in a moment: the server answers"},
		{"the service gave up", "cosmos", status(http.StatusRequestTimeout), "again in a moment: the server answers"},
		{"the service said no", "cosmos", status(http.StatusBadRequest), ""},
		{"the service throttles", "cosmos", &store.ThrottledError{Err: status(http.StatusTooManyRequests)}, "again in a moment; if it lasts, the container needs more throughput"},
		{"a file is locked", "sqlite", errors.New("database is locked"), ""},
	} {
		f, ok := errors.AsType[*failure](storeFailed(target{scheme: c.scheme}, fmt.Errorf("now: %w", c.err)))
		if !ok || f.code != exitUnreachable || !strings.HasPrefix(f.try, c.want) || (c.want == "") != (f.try == "") {
			t.Errorf("%s, %s: %+v, want code %d, and to try %q", c.scheme, c.name, f, exitUnreachable, c.want)
		}
	}
}
