package redis

import (
	"os"
	"strings"
	"testing"
)

// documentedRights are those that the package documentation grants a worker.
func documentedRights(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	must(t, "ReadFile()", err)
	_, text2, ok := strings.Cut(string(text), "ACL SETUSER worker on >PASSWORD ")
	if !ok {
		t.Fatal("doc.go has no ACL SETUSER worker on >PASSWORD …")
	}
	grant, _, _ := strings.Cut(text2, "\n//\n")
	rights := strings.Fields(strings.NewReplacer("//", " ", "\\", " ").Replace(grant))
	for _, r := range rights {
		if !strings.ContainsAny(r[:1], "~&+") && r != "resetchannels" {
			t.Fatalf("doc.go grants %q, which is no right", r)
		}
	}
	return rights
}
