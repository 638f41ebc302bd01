//go:build !unix || aix

package main

// canGuard says that commands can run under a lease here.
const canGuard = false
