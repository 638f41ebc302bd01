package advice

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
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
		f, ok := errors.AsType[*exit.Error](ForStore(storeuri.Target{Scheme: c.scheme}, fmt.Errorf("now: %w", c.err)))
		if !ok || f.Code != exit.Unreachable || !strings.HasPrefix(f.Try, c.want) || (c.want == "") != (f.Try == "") {
			t.Errorf("%s, %s: %+v, want code %d, and to try %q", c.scheme, c.name, f, exit.Unreachable, c.want)
		}
	}
}

func TestAUserThatCosmosDBDeniesLearnsWhatToCheck(t *testing.T) {
	for env, want := range map[string]string{
		"":                                  "set COSMOS_KEY or COSMOS_CONNECTION_STRING, or sign in (az login); ",
		storeuri.KeyVariable + "=" + "a2V5": "check the key in COSMOS_KEY, ",
		storeuri.ConnectionVariable + "=" + "AccountEndpoint=https://h.invalid:443/;AccountKey=a2V5;": "check the key in COSMOS_CONNECTION_STRING, ",
	} {
		uri := "cosmos://acct"
		if strings.HasPrefix(env, storeuri.ConnectionVariable) {
			uri = "cosmos:///"
		}
		target, err := storeuri.Parse(uri, func(name string) string {
			key, value, _ := strings.Cut(env, "=")
			return map[string]string{key: value}[name]
		})
		if err != nil {
			t.Fatal(err)
		}
		f, ok := errors.AsType[*exit.Error](ForStore(target, store.ErrDenied))
		if !ok || f.Code != exit.Denied || !strings.HasPrefix(f.Try, want) {
			t.Errorf("ForStore(denied) with %q = %+v, want to try: %s", env, f, want)
		}
		for err, want := range map[error]string{
			store.ErrMissing:   "leasectl init --store " + uri,
			errors.New("down"): "check the name of the account, ",
		} {
			if f, ok := errors.AsType[*exit.Error](ForStore(target, err)); !ok || !strings.HasPrefix(f.Try, want) {
				t.Errorf("ForStore(%v) = %+v, want to try: %s", err, f, want)
			}
		}
	}
}

func TestHintsCanBePastedIntoAShell(t *testing.T) {
	for text, want := range map[string]string{
		"sqlite:leases.db":                        "sqlite:leases.db",
		"cosmos://a/d/c?throughput=400&x=it's":    `'cosmos://a/d/c?throughput=400&x=it'\''s'`,
		"mongodb://***:***@h/d?collection=leases": "'mongodb://***:***@h/d?collection=leases'",
	} {
		if got := quoted(text); got != want {
			t.Errorf("quoted(%q) = %s, want %s", text, got, want)
		}
	}
}
