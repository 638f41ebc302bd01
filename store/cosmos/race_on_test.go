//go:build race

package cosmos

// RaceEnabled: the race detector makes everything several times slower, so that
// appends race in fewer rounds.
const RaceEnabled = true
