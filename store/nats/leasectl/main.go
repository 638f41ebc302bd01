// Command leasectl is github.com/slotlease/slotlease/cmd/leasectl, and opens ledgers in NATS, too:
//
//	export LEASECTL_STORE=nats://worker@10.0.0.1,10.0.0.2,10.0.0.3/leases
//
// Build it in a clone, until this module is released: its go.mod has a replace directive, which go install with a version refuses.
//
//	cd store/nats && go install ./leasectl
//
// The user's password is in the environment variable NATS_PASSWORD, or creds=PATH names a file with credentials. Commands that run
// under a lease don't get NATS_PASSWORD.
package main

import (
	"github.com/slotlease/slotlease/cmd/leasectl/app"
	_ "github.com/slotlease/slotlease/store/nats" // the scheme
)

func main() { app.Main() }
