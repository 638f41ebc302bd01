//go:build !linux

package sqlite

// sharedFileSystem, mounted and room know nothing here.
func sharedFileSystem(string) string { return "" }

func mounted(string) bool { return false }

func room(string) (uint64, bool) { return 0, false }
