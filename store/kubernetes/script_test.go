package kubernetes

import (
	"strings"
	"testing"
)

func TestTheScriptOfInitMakesTheNamespaceAndItsRoles(t *testing.T) {
	got := (&Ledger{c: &cluster{namespace: "jobs"}}).InitScript()
	for _, want := range []string{"\nkubectl create namespace jobs\n", "\nkubectl apply -n jobs -f - <<'END'\n", "name: slotlease-worker\n", "\nEND\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("InitScript() = %s, want %q in it", got, want)
		}
	}
}
