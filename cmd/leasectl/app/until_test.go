package app

import (
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

func TestAnOrderThatEndsInThePastNamesItsFlag(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	for until, want := range map[string]string{
		"2020-01-01T00:00:00Z": "--until 2020-01-01T00:00:00.000Z: must be ahead of store time: ",
		"2900-01-01T00:00:00Z": "--until 2900-01-01T00:00:00.000Z: must be at most 366 days ahead: ",
	} {
		got := leasectl(t, nil, "pause", "--store", storeArg, "--worker-type", "t", "--until", until, "--yes")
		if got.code != exit.Usage || !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, "Until") {
			t.Errorf("leasectl pause --until %s = %+v, want %q", until, got, want)
		}
	}
}
