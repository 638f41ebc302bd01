// Package linear checks that the MongoDB store stays linearizable behind a network
// that misbehaves. Each of some clients reaches one peer through a TCP proxy of its
// own, in this process, which delays, swallows and resets what passes, or is shut
// for a while; what they all saw is checked with the package of the same name in
// the main module. The proxies are why it is in a module of its own.
//
// It has no code but its test:
//
//	go test -v ./linear
package linear
