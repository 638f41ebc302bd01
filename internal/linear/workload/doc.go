// Package workload makes clients produce histories that are worth checking: they look
// at the head and claim the next key, race for keys, fill holes, read back, and trim,
// with records whose fields are all random. Each client has its own generator. The
// package checks nothing and ignores errors: package linear records the calls.
package workload
