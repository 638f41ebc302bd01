//go:build !linux

package tmpfs

// Use does nothing here.
func Use() {}
