//go:build !linux

package sqlite

// sharedFileSystem and mounted know nothing here.
func sharedFileSystem(string) string { return "" }

func mounted(string) bool { return false }
