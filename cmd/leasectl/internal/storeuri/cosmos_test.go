package storeuri_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/store/memory"
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
		uri, env        string
		ledger, created string
	}{
		{"cosmos://acct", cosmos.KeyVariable + "=" + anyKey, "cosmos WorkerProcess/WorkerLeases at acct.documents.azure.com:443", " (400 RU/s)"},
		{"cosmos://acct/jobs", "", "cosmos jobs/WorkerLeases at acct.documents.azure.com:443", " (400 RU/s)"},
		{"cosmos://acct/jobs/leases?throughput=1000", cosmos.KeyVariable + "=" + anyKey, "cosmos jobs/leases at acct.documents.azure.com:443", " (1000 RU/s)"},
		{"cosmos://127.0.0.1:8081/jobs/leases?insecureHTTP=true&serverless=true", cosmos.KeyVariable + "=" + anyKey, "cosmos jobs/leases at 127.0.0.1:8081", " (serverless)"},
		{"cosmos://acct/jobs?serverSkew=500ms&unsafeUnverifiedAccount=true", cosmos.KeyVariable + "=" + anyKey, "cosmos jobs/WorkerLeases at acct.documents.azure.com:443", " (400 RU/s)"},
		{"cosmos:///jobs/leases?serverSkew=500ms&unsafeUnverifiedAccount=true", cosmos.ConnectionVariable + "=" + anyConnection, "cosmos jobs/leases at h.invalid:443", " (400 RU/s)"},
		{"cosmos:///", cosmos.ConnectionVariable + "=" + anyConnection, "cosmos WorkerProcess/WorkerLeases at h.invalid:443", " (400 RU/s)"},
		{"cosmos:///jobs/leases?autoscale=2000", cosmos.ConnectionVariable + "=" + anyConnection, "cosmos jobs/leases at h.invalid:443", " (autoscale, at most 2000 RU/s)"},
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
		if target.Shown != c.uri || target.Provision() != c.created {
			t.Errorf("target of %s is shown as %s%s, want as it is, and %s", c.uri, target.Shown, target.Provision(), c.created)
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

func TestTheHintOfABadCosmosStoreIsAboutWhatIsWrong(t *testing.T) {
	const form, variable = "cosmos:///DATABASE/CONTAINER, as in leasectl --help", "check " + cosmos.ConnectionVariable
	for _, c := range []struct{ uri, connection, try string }{
		{"cosmos:///a/b/c", anyConnection, form},
		{"cosmos:///a?throughput=x", anyConnection, form},
		{"cosmos:///a?insecureHTTP=true", anyConnection, form},
		{"cosmos:///a", "AccountKey=" + anyKey, variable},
	} {
		target, err := parse(c.uri, cosmos.ConnectionVariable+"="+c.connection)
		if err == nil {
			_, err = target.Open(t.Context(), true)
		}
		if f, ok := errors.AsType[*exit.Error](err); !ok || f.Try != c.try {
			t.Errorf("open of %s = %+v, want to try: %s", c.uri, err, c.try)
		}
	}
}

// accounted is a ledger in an account.
type accounted struct {
	store.Ledger

	account cosmos.Account
}

func (a accounted) Account() cosmos.Account { return a.account }

func TestWhatAnAccountLacksIsAWarning(t *testing.T) {
	good := cosmos.Account{ReadAt: time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC), Consistency: "Strong", Verified: true}
	weak := good
	weak.Consistency = "Eventual"
	for _, c := range []struct {
		name string
		l    store.Ledger
		want string
	}{
		{"a ledger without an account", memory.New(memory.Options{}), ""},
		{"an account that gives all", accounted{account: good}, ""},
		{"an account that gives less", accounted{account: weak}, weak.Warning()},
	} {
		if got := storeuri.Warning(c.l); got != c.want {
			t.Errorf("storeuri.Warning() of %s = %q, want %q", c.name, got, c.want)
		}
	}
	if weak.Warning() == "" {
		t.Error("nothing is wrong with an account of eventual consistency")
	}
}

func TestACommandUnderALeaseDoesNotSeeWhatOpensTheStore(t *testing.T) {
	env := []string{"PATH=/bin", storeuri.Variable + "=cosmos://acct", cosmos.KeyVariable + "=" + anyKey, cosmos.ConnectionVariable + "=" + anyConnection, "COSMOS_KEYS=mine"}
	before := slices.Clone(env)
	for _, c := range []struct {
		scheme string
		want   []string
	}{
		{storeuri.Cosmos, []string{"PATH=/bin", "COSMOS_KEYS=mine"}},
		{storeuri.SQLite, []string{"PATH=/bin", env[2], env[3], "COSMOS_KEYS=mine"}},
	} {
		if got := (storeuri.Target{Scheme: c.scheme}).Environ(env); !slices.Equal(got, c.want) {
			t.Errorf("Environ() of %s = %q, want %q", c.scheme, got, c.want)
		}
	}
	if !slices.Equal(env, before) {
		t.Errorf("Environ() changed what it was given: %q", env)
	}
}
