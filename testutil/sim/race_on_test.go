//go:build race

package sim_test

// raceEnabled: the race detector makes simulations ten times slower, so a tenth is run.
const raceEnabled = true
