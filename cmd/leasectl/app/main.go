// Package app is the program leasectl. Whoever writes a store needs a leasectl that can open it, and builds one by
// a main package of this form:
//
//	package main
//
//	import (
//		"github.com/slotlease/slotlease/cmd/leasectl/app"
//
//		_ "example.com/mystore" // calls store.Register in its init
//	)
//
//	func main() { app.Main() }
//
// See [github.com/slotlease/slotlease/store.Register] for what such a store registers, and
// github.com/slotlease/slotlease/cmd/leasectl for the command itself.
package app

import (
	"context"
	"os"
)

// Main runs leasectl by the arguments and the environment of the process, and ends the process with the exit code of
// the command.
func Main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
