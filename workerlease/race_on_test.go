//go:build race

package workerlease_test

// raceEnabled: the race detector makes simulations ten times slower.
const raceEnabled = true
