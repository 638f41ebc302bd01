package redis

import (
	"strings"
	"testing"
)

// documentedRights are those that InitScript grants a worker of a ledger with the default prefix.
func documentedRights(t testing.TB) []string {
	t.Helper()
	l, err := Open(t.Context(), Options{URI: "redis://127.0.0.1"})
	must(t, "Open()", err)
	_, grant, ok := strings.Cut(l.InitScript(), "ACL SETUSER worker on >PASSWORD ")
	must(t, "Close()", l.Close(t.Context()))
	if !ok {
		t.Fatal("InitScript() has no ACL SETUSER worker on >PASSWORD …")
	}
	rights := strings.Fields(grant)
	for _, r := range rights {
		if !strings.ContainsAny(r[:1], "~&+") && r != "resetchannels" {
			t.Fatalf("InitScript() grants %q, which is no right", r)
		}
	}
	return rights
}
