package cosmos

import (
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
)

func TestAnAccountIsOpenedByItsURIAndTheEnvironment(t *testing.T) {
	t.Parallel()
	const key, connection = "a2V5a2V5a2V5", "AccountEndpoint=https://h.invalid:443/;AccountKey=a2V5a2V5a2V5;" // not one of a real account
	for _, c := range []struct {
		uri   string
		env   map[string]string
		want  string // the ledger's String
		fails string
	}{
		{uri: "cosmos://acct/jobs/leases", env: map[string]string{KeyVariable: key + "\n"}, want: "cosmos jobs/leases at acct.documents.azure.com:443"},
		{uri: "cosmos:///jobs?serverSkew=1s", env: map[string]string{ConnectionVariable: connection}, want: "cosmos jobs/WorkerLeases at h.invalid:443"},
		{uri: "cosmos://acct", env: map[string]string{KeyVariable: key, ConnectionVariable: connection}, fails: "set only one"},
		{uri: "cosmos://acct", env: map[string]string{ConnectionVariable: connection}, fails: "names the account"},
		{uri: "cosmos:///jobs", fails: "has no account"},
		{uri: "cosmos://127.0.0.1:8081?insecureHTTP=true", fails: "an emulator wants a key"},
		{uri: "cosmos:///a/b/c", env: map[string]string{ConnectionVariable: connection}, fails: "the URI must be of the form cosmos:///DATABASE/CONTAINER"},
		{uri: "cosmos:///a?insecureHTTP=true", env: map[string]string{ConnectionVariable: connection}, fails: "parameter insecureHTTP goes with an account in the URI only"},
		{uri: "cosmos:///a%2Fb", env: map[string]string{ConnectionVariable: connection}, fails: `database "a/b": character '/' at byte 1 is not allowed`},
		{uri: "cosmos://acct?troughput=400", env: map[string]string{KeyVariable: key}, fails: "parameter troughput is unknown"},
	} {
		l, err := store.Open(t.Context(), c.uri, store.OpenOptions{Getenv: func(name string) string { return c.env[name] }})
		if c.fails != "" {
			if err == nil || !strings.HasPrefix(err.Error(), "cosmos: open: ") || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), key) {
				t.Errorf("store.Open(%s) = %v, want %q and no key", c.uri, err, c.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("store.Open(%s) = %v", c.uri, err)
			continue
		}
		if got := l.(*Ledger).String(); got != c.want {
			t.Errorf("store.Open(%s) = %s, want %s", c.uri, got, c.want)
		}
		must(t, "Close()", l.Close(t.Context()))
	}
}
