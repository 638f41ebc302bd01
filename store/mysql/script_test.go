package mysql

import (
	"strings"
	"testing"
)

func TestTheScriptOfInitTakesNoNameForAnother(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"mysql://u@h/d?table=CO_WORKERS": "ON `d`.`CO_WORKERS` TO 'u'@'%';",
		"mysql://LEDGER@h/d":             "TO 'LEDGER'@'%';",
		"mysql://h/d":                    "TO 'worker'@'%';", // ''@'%' would be everybody.
		"mysql://o'd%5C@h/d":             `TO 'o\'d\\'@'%';`,
	} {
		if got := opened(t, Options{URI: uri}).InitScript(); !strings.Contains(got, want) {
			t.Errorf("InitScript() of %s = %s, want %s in it", uri, got, want)
		}
	}
}
