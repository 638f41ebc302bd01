package postgres

import (
	"strings"
	"testing"
)

// psql executes a line that begins with a backslash.
func TestTheScriptOfInitTakesNoNameForAnother(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"postgres://u@h/d%0A%5C!%20date":     "in the database d \\! date\nCREATE SCHEMA",
		"postgres://LEDGER@h/d?table=WORKER": `ON "public"."WORKER" TO "LEDGER";`,
		"postgres://o%22d@h/d":               `TO "o""d";`,
	} {
		if got := opened(t, Options{URI: uri}).InitScript(); !strings.Contains(got, want) {
			t.Errorf("InitScript() of %s = %s, want %s in it", uri, got, want)
		}
	}
}
