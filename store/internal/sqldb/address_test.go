package sqldb

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
)

func TestParametersThatAreRefused(t *testing.T) {
	t.Parallel()
	for parameter, want := range map[string]string{
		"table=a.b": "must be a name", "table=" + strings.Repeat("t", 21): "at most 20", "schema=1a": "must be a name", "schema=tttttttttt": "at most 9",
		"appName=é": "printable ASCII", "appName=a:b": "without , and :", "connectTimeout=0s": "a duration above 0", "connectTimeout=61s": "at most 1m0s",
		"connectTimeout=2": "such as 3s", "serverSkew=0s": "a duration above 0", "maxConns=0": "from 1 to 1000", "maxConns=1001": "from 1 to 1000", "other=1": "is unknown: use table",
	} {
		var a Address
		name, value, _ := strings.Cut(parameter, "=")
		documenttest.Says(t, "Parameter("+parameter+")", a.Parameter(&form, name, value), nil, want)
	}
	seconds := form
	seconds.Seconds = true
	for value, fine := range map[string]bool{"0": false, "61": false, "2s": false, "60": true} {
		var a Address
		if err := a.Parameter(&seconds, "connectTimeout", value); (err == nil) != fine || fine && a.ConnectTimeout != time.Minute {
			t.Errorf("Parameter(connectTimeout, %s) = %v after %v, want fine: %v", value, a.ConnectTimeout, err, fine)
		}
	}
}

func TestOptionsThatAreRefusedAreAllNamed(t *testing.T) {
	t.Parallel()
	const canary = documenttest.Canary
	a := Address{DatabaseURI: storekit.DatabaseURI{Password: canary}, Schema: "a", Table: "b", Skew: time.Second}
	_, err := Open[*facts](&form, &a, Options{Schema: "x.y", Table: "c.d", ServerSkew: time.Minute, Password: "other" + canary, AppName: "\n", MaxConns: -1})
	documenttest.Says(t, "Open()", err, nil, "fake: open: ", "schema is given", "table is given", "Schema must", "Table must", "serverSkew 1s", "a password is given", "AppName", "MaxConns -1")
	if strings.Contains(err.Error(), canary) {
		t.Errorf("Open() = %v, want no password", err)
	}
	ask := func(context.Context) (string, error) { return "x", nil }
	_, err = Open[*facts](&form, &Address{}, Options{URI: "x", Lent: true, Password: "x", PasswordFunc: ask, ServerSkew: -1})
	documenttest.Says(t, "Open()", err, nil, "PasswordFunc and a password", "the application's pool has its own", "ServerSkew -1ns")
}

func TestAStoreIsOpenedByItsSchemeWithThePasswordOfTheEnvironment(t *testing.T) {
	t.Parallel()
	own := form
	own.Schemes = []string{"fake-of-sqldb"}
	passwords := map[string]string{}
	read := func(uri string) (*Address, error) {
		return &Address{DatabaseURI: storekit.DatabaseURI{User: "me", Password: strings.TrimPrefix(uri, "fake-of-sqldb://")}}, nil
	}
	Register(&own, read,
		func(_ context.Context, uri, password string, _ store.OpenOptions) (*Ledger[*facts], error) {
			passwords[uri] = password
			return nil, errDown
		})
	for _, uri := range []string{"fake-of-sqldb://", "fake-of-sqldb://p"} {
		l, err := store.Open(t.Context(), uri, store.OpenOptions{Getenv: func(name string) string { return name }})
		if l != nil || err == nil {
			t.Errorf("Open() = %v, %v, want nil and an error", l, err)
		}
	}
	if passwords["fake-of-sqldb://"] != "FAKE_PASSWORD" || passwords["fake-of-sqldb://p"] != "" {
		t.Errorf("passwords = %q, want that of the environment unless the URI has one", passwords)
	}
}
