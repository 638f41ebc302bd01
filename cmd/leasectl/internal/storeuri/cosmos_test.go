package storeuri_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store/cosmos"
)

const (
	anyKey        = "a2V5a2V5a2V5" // not one of a real account
	anyConnection = "AccountEndpoint=https://h.invalid:443/;AccountKey=" + anyKey + ";"
)

// parse parses a store's URI in an environment of one variable.
func parse(uri, env string) (storeuri.Target, error) {
	set, value, _ := strings.Cut(env, "=")
	return storeuri.Parse(uri, func(name string) string { return map[string]string{set: value}[name] })
}

func TestACosmosStoreIsOpenedByWhatTheEnvironmentHolds(t *testing.T) {
	for _, c := range []struct {
		uri, env, ledger string
	}{
		{"cosmos://acct", cosmos.KeyVariable + "=" + anyKey, "cosmos WorkerProcess/WorkerLeases at acct.documents.azure.com:443"},
		{"cosmos://acct/jobs", "", "cosmos jobs/WorkerLeases at acct.documents.azure.com:443"},
		{"cosmos://acct/jobs/leases?throughput=1000", cosmos.KeyVariable + "=" + anyKey, "cosmos jobs/leases at acct.documents.azure.com:443"},
		{"cosmos://127.0.0.1:8081/jobs/leases?insecureHTTP=true&serverless=true", cosmos.KeyVariable + "=" + anyKey, "cosmos jobs/leases at 127.0.0.1:8081"},
		{"cosmos://acct/jobs?serverSkew=500ms&unsafeUnverifiedAccount=true", cosmos.KeyVariable + "=" + anyKey, "cosmos jobs/WorkerLeases at acct.documents.azure.com:443"},
		{"cosmos:///jobs/leases?serverSkew=500ms&unsafeUnverifiedAccount=true", cosmos.ConnectionVariable + "=" + anyConnection, "cosmos jobs/leases at h.invalid:443"},
		{"cosmos:///", cosmos.ConnectionVariable + "=" + anyConnection, "cosmos WorkerProcess/WorkerLeases at h.invalid:443"},
		{"cosmos:///jobs/leases?autoscale=2000", cosmos.ConnectionVariable + "=" + anyConnection, "cosmos jobs/leases at h.invalid:443"},
	} {
		target, err := parse(c.uri, c.env)
		if err != nil {
			t.Errorf("target of %s = %v", c.uri, err)
			continue
		}
		l, err := target.Open(t.Context(), true)
		if err != nil {
			t.Errorf("open of %s = %v", c.uri, err)
			continue
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := l.(interface{ String() string }).String(); got != c.ledger {
			t.Errorf("open of %s = %s, want %s", c.uri, got, c.ledger)
		}
		if target.Shown != c.uri {
			t.Errorf("target of %s is shown as %s, want as it is", c.uri, target.Shown)
		}
	}
}

func TestABadCosmosStoreIsAMistakeInTheUsage(t *testing.T) {
	for _, c := range []struct{ uri, env, want string }{
		{"cosmos://acct/a/b/c", cosmos.KeyVariable + "=" + anyKey, "the path must be /DATABASE/CONTAINER or less"},
		{"cosmos://acct?troughput=400", cosmos.KeyVariable + "=" + anyKey, "parameter troughput is unknown"},
		{"cosmos://acct?throughput=50", cosmos.KeyVariable + "=" + anyKey, "throughput 50 RU/s: must be a multiple of 100"},
		{"cosmos://acct", cosmos.KeyVariable + "=!", "the key is not base64"},
		{"cosmos://example.com?insecureHTTP=true", cosmos.KeyVariable + "=" + anyKey, "for loopback addresses only"},
		{"cosmos://acct?serverSkew=soon", cosmos.KeyVariable + "=" + anyKey, "parameter serverSkew must be a duration above 0, at most 1h0m0s, such as 500ms"},
		{"cosmos://acct?unsafeUnverifiedAccount=yes", cosmos.KeyVariable + "=" + anyKey, "parameter unsafeUnverifiedAccount must be true or false"},
		{"cosmos:///a?serverSkew=-1s", cosmos.ConnectionVariable + "=" + anyConnection, "DATABASE/CONTAINER?throughput=400: uri: parameter serverSkew must be a duration above 0"},
		{"cosmos:///a/b/c", cosmos.ConnectionVariable + "=" + anyConnection, "the URI must be of the form cosmos:///DATABASE/CONTAINER"},
		{"cosmos:///a?insecureHTTP=true", cosmos.ConnectionVariable + "=" + anyConnection, "parameter insecureHTTP goes with an account in the URI only"},
		{"cosmos:///a", cosmos.ConnectionVariable + "=AccountKey=" + anyKey, "must have an AccountEndpoint and an AccountKey"},
	} {
		target, err := parse(c.uri, c.env)
		if err != nil {
			t.Errorf("target of %s = %v", c.uri, err)
			continue
		}
		_, err = target.Open(t.Context(), true)
		f, ok := errors.AsType[*exit.Error](err)
		if !ok || f.Code != exit.Usage || !strings.Contains(f.Error(), c.want) {
			t.Errorf("open of %s = %v, want a mistake in the usage: %s", c.uri, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), anyKey) {
			t.Errorf("open of %s = %v, want no key", c.uri, err)
		}
	}
}

func TestACommandUnderALeaseDoesNotSeeWhatOpensTheStore(t *testing.T) {
	env := []string{"PATH=/bin", storeuri.Variable + "=cosmos://acct", cosmos.KeyVariable + "=" + anyKey, cosmos.ConnectionVariable + "=" + anyConnection, "COSMOS_KEYS=mine"}
	before := slices.Clone(env)
	for _, c := range []struct {
		uri  string
		want []string
	}{
		{"cosmos://acct", []string{"PATH=/bin", "COSMOS_KEYS=mine"}},
		{"sqlite:x.db", []string{"PATH=/bin", env[2], env[3], "COSMOS_KEYS=mine"}},
	} {
		target, err := parse(c.uri, "")
		if got := target.Environ(env); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("Environ() of %s = %q, %v, want %q", c.uri, got, err, c.want)
		}
	}
	if !slices.Equal(env, before) {
		t.Errorf("Environ() changed what it was given: %q", env)
	}
}
