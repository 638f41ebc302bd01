package sim_test

import (
	"fmt"
	"testing"

	"github.com/slotlease/slotlease/testutil/sim"
)

// Seeds that have shown a fault of the engine among many, each with what was said falsely of another worker.
func TestSeedsThatHaveFoundAFault(t *testing.T) {
	skipUnderRace(t)
	for _, found := range []struct {
		seed    int64
		options func(seed int64) sim.Options
		what    string
	}{
		{87, longOrShort, "a read that lacked the release of a slot, and two records more, showed that its worker had died"},
		{129, longOrShort, "so did a record of a later version, with nothing known of what is below it"},
		{84, sim.RandomSlow, "and it was told though the release was further down than what was read"},
	} {
		t.Run(fmt.Sprint(found.seed), func(t *testing.T) {
			t.Parallel()
			sim.Run(t, found.options(found.seed)).Check(t)
			if t.Failed() {
				t.Log(found.what)
			}
		})
	}
}
