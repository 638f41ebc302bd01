// Package tally counts what happens to the workers of a process, for packages that pass that on to a
// monitoring system. It names each measure once, so that all of them have the same.
package tally
