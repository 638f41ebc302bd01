//go:build race

// Package race shows whether the race detector is on. It makes everything up to ten times
// slower, so tests do less then.
package race

// Enabled reports whether the race detector is on.
const Enabled = true
