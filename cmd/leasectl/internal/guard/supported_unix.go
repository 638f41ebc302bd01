//go:build unix && !aix

package guard

// Supported reports whether commands can run under a guard on this system.
const Supported = true
