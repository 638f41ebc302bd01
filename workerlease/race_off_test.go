//go:build !race

package workerlease_test

const raceEnabled = false
