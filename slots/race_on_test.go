//go:build race

package slots_test

// raceEnabled: the race detector makes everything several times slower.
const raceEnabled = true
