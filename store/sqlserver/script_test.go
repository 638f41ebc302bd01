//go:build sqlserver

package sqlserver

import (
	"strings"
	"testing"
)

func TestTheScriptOfInitTakesNoNameForAnother(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"sqlserver://u@h/d?table=CO_WORKERS": "OBJECT::[dbo].[CO_WORKERS] TO [u];",
		"sqlserver://LEDGER@h/d":             "TO [LEDGER];",
		"sqlserver://u@h/d%0AGO":             "in the database d GO\n",
	} {
		if got := opened(t, Options{URI: uri}).InitScript(); !strings.Contains(got, want) {
			t.Errorf("InitScript() of %s = %s, want %s in it", uri, got, want)
		}
	}
}
