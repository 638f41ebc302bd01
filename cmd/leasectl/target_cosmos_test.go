package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/store/memory"
)

const (
	anyKey        = "a2V5a2V5a2V5" // not one of a real account
	anyConnection = "AccountEndpoint=https://h.invalid:443/;AccountKey=" + anyKey + ";"
)

// cosmosOf is the target of a store's URI, in an environment.
func cosmosOf(t *testing.T, uri string, env ...string) (target, error) {
	t.Helper()
	a := &app{env: env}
	c := &cobra.Command{Use: "init"}
	c.Flags().StringVar(&a.store, "store", "", "")
	if err := c.ParseFlags([]string{"--store", uri}); err != nil {
		t.Fatal(err)
	}
	target := a.target(c)
	return target, errors.Join(a.problems...)
}

func TestACosmosStoreIsOpenedByWhatTheEnvironmentHolds(t *testing.T) {
	for _, c := range []struct {
		uri, env        string
		ledger, created string
	}{
		{"cosmos://acct", keyVariable + "=" + anyKey, "cosmos WorkerProcess/WorkerLeases at acct.documents.azure.com:443", " (400 RU/s)"},
		{"cosmos://acct/jobs", "", "cosmos jobs/WorkerLeases at acct.documents.azure.com:443", " (400 RU/s)"},
		{"cosmos://acct/jobs/leases?throughput=1000", keyVariable + "=" + anyKey, "cosmos jobs/leases at acct.documents.azure.com:443", " (1000 RU/s)"},
		{"cosmos://127.0.0.1:8081/jobs/leases?insecureHTTP=true&serverless=true", keyVariable + "=" + anyKey, "cosmos jobs/leases at 127.0.0.1:8081", " (serverless)"},
		{"cosmos:///", connectionVariable + "=" + anyConnection, "cosmos WorkerProcess/WorkerLeases at h.invalid:443", " (400 RU/s)"},
		{"cosmos:///jobs/leases?autoscale=2000", connectionVariable + "=" + anyConnection, "cosmos jobs/leases at h.invalid:443", " (autoscale, at most 2000 RU/s)"},
	} {
		target, err := cosmosOf(t, c.uri, c.env)
		if err != nil {
			t.Errorf("target of %s = %v", c.uri, err)
			continue
		}
		l, err := target.open(t.Context(), true)
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
		if target.shown != c.uri || target.provision() != c.created {
			t.Errorf("target of %s is shown as %s%s, want as it is, and %s", c.uri, target.shown, target.provision(), c.created)
		}
	}
}

func TestABadCosmosStoreIsAMistakeInTheUsage(t *testing.T) {
	for _, c := range []struct{ uri, env, want string }{
		{"cosmos://acct/a/b/c", keyVariable + "=" + anyKey, "the path must be /DATABASE/CONTAINER or less"},
		{"cosmos://acct?troughput=400", keyVariable + "=" + anyKey, "parameter troughput is unknown"},
		{"cosmos://acct?throughput=50", keyVariable + "=" + anyKey, "throughput 50 RU/s: must be a multiple of 100"},
		{"cosmos://acct", keyVariable + "=!", "the key is not base64"},
		{"cosmos://example.com?insecureHTTP=true", keyVariable + "=" + anyKey, "for loopback addresses only"},
		{"cosmos:///a/b/c", connectionVariable + "=" + anyConnection, "the URI must be of the form cosmos:///DATABASE/CONTAINER"},
		{"cosmos:///a?insecureHTTP=true", connectionVariable + "=" + anyConnection, "parameter insecureHTTP goes with an account in the URI only"},
		{"cosmos:///a", connectionVariable + "=AccountKey=" + anyKey, "must have an AccountEndpoint and an AccountKey"},
	} {
		target, err := cosmosOf(t, c.uri, c.env)
		if err != nil {
			t.Errorf("target of %s = %v", c.uri, err)
			continue
		}
		_, err = target.open(t.Context(), true)
		f, ok := errors.AsType[*failure](storeFailed(target, err))
		if !ok || f.code != exitUsage || !strings.Contains(f.Error(), c.want) {
			t.Errorf("open of %s = %v, want a mistake in the usage: %s", c.uri, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), anyKey) {
			t.Errorf("open of %s = %v, want no key", c.uri, err)
		}
	}
}

func TestWhoIsDeniedByCosmosDBIsToldWhatToCheck(t *testing.T) {
	for env, want := range map[string]string{
		"":                                       "set COSMOS_KEY or COSMOS_CONNECTION_STRING, or sign in (az login); ",
		keyVariable + "=" + anyKey:               "check the key in COSMOS_KEY, ",
		connectionVariable + "=" + anyConnection: "check the key in COSMOS_CONNECTION_STRING, ",
	} {
		uri := "cosmos://acct"
		if strings.HasPrefix(env, connectionVariable) {
			uri = "cosmos:///"
		}
		target, err := cosmosOf(t, uri, env)
		if err != nil {
			t.Fatal(err)
		}
		f, ok := errors.AsType[*failure](storeFailed(target, store.ErrDenied))
		if !ok || f.code != exitDenied || !strings.HasPrefix(f.try, want) {
			t.Errorf("storeFailed(denied) with %q = %+v, want to try: %s", env, f, want)
		}
		for err, want := range map[error]string{
			store.ErrMissing:   "leasectl init --store " + uri,
			errors.New("down"): "check the name of the account, ",
		} {
			if f, ok := errors.AsType[*failure](storeFailed(target, err)); !ok || !strings.HasPrefix(f.try, want) {
				t.Errorf("storeFailed(%v) = %+v, want to try: %s", err, f, want)
			}
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
	good := cosmos.Account{ReadAt: noon, Consistency: "Strong", Verified: true}
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
		if got := warning(c.l); got != c.want {
			t.Errorf("warning() of %s = %q, want %q", c.name, got, c.want)
		}
	}
	if weak.Warning() == "" {
		t.Error("nothing is wrong with an account of eventual consistency")
	}
}

func TestACommandUnderALeaseInCosmosDBGetsNoKey(t *testing.T) {
	env := []string{"PATH=/bin", keyVariable + "=" + anyKey, connectionVariable + "=" + anyConnection, "COSMOS_KEYS=mine"}
	if got, want := withoutKeys(env), []string{"PATH=/bin", "COSMOS_KEYS=mine"}; !slices.Equal(got, want) {
		t.Errorf("withoutKeys() = %q, want %q", got, want)
	}
	if len(env) != 4 || env[1] != keyVariable+"="+anyKey {
		t.Errorf("withoutKeys() changed what it was given: %q", env)
	}
}

func TestAnEmulatorWithoutAKeyIsToldWhichVariable(t *testing.T) {
	for _, uri := range []string{"cosmos://localhost:8081/?insecureSkipVerify=true", "cosmos://127.0.0.1:1/d/c?insecureHTTP=true"} {
		got := leasectl(t, []string{storeVariable + "=" + uri}, "init")
		if got.code != exitUsage || !strings.Contains(got.stderr, "set COSMOS_KEY") {
			t.Errorf("leasectl init of %s without a key = %+v, want to be told of COSMOS_KEY", uri, got)
		}
	}
}

func TestAKeyMayEndWithANewline(t *testing.T) {
	got, err := cosmosOf(t, "cosmos://acct", keyVariable+"="+anyKey+"\n")
	if err != nil || got.key != anyKey {
		t.Errorf("the key is %q, %v, want it without the newline", got.key, err)
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
