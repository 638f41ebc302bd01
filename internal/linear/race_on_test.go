//go:build race

package linear_test

// raceEnabled: the race detector makes everything several times slower.
const raceEnabled = true
