// Package bubble tells whether the caller runs in a bubble of testing/synctest, whose time goes on only
// while all goroutines wait for one another. What waits for the world outside must not begin there.
package bubble
