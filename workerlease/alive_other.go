//go:build !unix

package workerlease

// isAlive reports that a process of this machine lives. Here that isn't known.
func isAlive(int) bool { return false }
