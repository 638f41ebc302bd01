//go:build race

package sim_test

// raceEnabled: the race detector makes simulations ten times slower. Fewer are run
// then, but for the main proof.
const raceEnabled = true
