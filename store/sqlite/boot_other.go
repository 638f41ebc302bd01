//go:build !linux

package sqlite

// kernel returns no boot clock: store time is then the wall clock.
func kernel() (machine, error) { return machine{}, nil }
