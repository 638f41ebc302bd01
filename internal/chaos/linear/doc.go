// Package linear checks that the MongoDB store stays linearizable over a network that
// misbehaves. Each client reaches the server through its own TCP proxy, in this process,
// which delays, swallows and resets connections, or is shut for a while. The package of
// the same name in the main module checks the combined history. The proxies need a
// separate module.
//
// The package has only a test:
//
//	go test -v ./linear
package linear
