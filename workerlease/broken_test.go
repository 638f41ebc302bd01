package workerlease_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// run runs a simulation in which all workers follow the variant, and returns what
// was wrong, if anything was.
func (v variant) run(t *testing.T, seed int64) []string {
	t.Helper()
	rules := machine.Standard
	if v.broken != nil {
		v.broken(&rules)
	}
	o := v.regime(seed)
	create := o.Client
	if create == nil {
		create = workerlease.NewClient
	}
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		if v.around != nil {
			l, c = v.around(l, c)
		}
		client := create(l, c)
		workerlease.SetRules(client, rules)
		return client
	}
	r := sim.Run(t, o)
	wrong := r.Violations
	for _, x := range r.Overlaps {
		wrong = append(wrong, fmt.Sprintf("at %v: %s works, and %s works", x.At, x.Newer, x.Older))
	}
	return wrong
}

// A simulation that finds nothing proves something only if it finds what is
// there. So each rule is broken in turn: all must be noticed, and soon.
func TestSimulationCatchesEveryBrokenVariant(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("takes a minute, and ten under the race detector")
	}
	const most = 1000
	var mu sync.Mutex
	lines, caught, slowest := map[string]string{}, 0, int64(0)
	t.Run("variants", func(t *testing.T) {
		for _, v := range variants {
			t.Run(v.name, func(t *testing.T) {
				t.Parallel()
				for seed := range int64(most) {
					wrong := v.run(t, seed)
					if len(wrong) == 0 {
						continue
					}
					// It is the broken rule that was caught: without it, nothing is wrong.
					if v.broken != nil || v.around != nil {
						whole := variant{regime: v.regime}
						for _, wrong := range whole.run(t, seed) {
							t.Errorf("seed %d, with no rule broken: %s", seed, wrong)
						}
					}
					mu.Lock()
					defer mu.Unlock()
					caught++
					slowest = max(slowest, seed+1)
					lines[v.name] = fmt.Sprintf("%5d  %.120s", seed+1, wrong[0])
					return
				}
				t.Errorf("%s was not noticed in %d seeds", v.rule, most)
			})
		}
	})
	var table strings.Builder
	for _, v := range variants {
		fmt.Fprintf(&table, "%-24s %-54s %s\n", v.rule, v.name, lines[v.name])
	}
	t.Logf("rule, variant, seeds until it was caught, and by what:\n%s", table.String())
	if err := figures.Save(figures.Proof{
		Name: "variants", Command: "go test ./workerlease -run TestSimulationCatchesEveryBrokenVariant -v",
		Figures: []figures.Figure{
			{What: "broken variants of the protocol, all caught by the simulation", Value: fmt.Sprint(caught)},
			{What: "seeds that the best hidden of them took", Value: fmt.Sprint(slowest)},
		},
	}); err != nil {
		t.Error(err)
	}
}
