//go:build !race

package cosmos

// RaceEnabled says whether the race detector is on.
const RaceEnabled = false
