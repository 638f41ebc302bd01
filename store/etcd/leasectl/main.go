// Command leasectl is github.com/slotlease/slotlease/cmd/leasectl, and opens ledgers in etcd, too:
//
//	export LEASECTL_STORE=etcd://10.0.0.1:2379,10.0.0.2:2379/team/jobs
//
// Build it in a clone, until this module is released: its go.mod has a replace directive, which go install with a version refuses.
//
//	cd store/etcd && go install ./leasectl
//
// The URI has neither a user nor a password before the host. Its parameters are user=NAME, with the password in the environment
// variable ETCD_PASSWORD or in passwordFile=PATH; with etcds:// ca=PATH, cert=PATH and key=PATH of a client's certificate, and serverName=NAME;
// serverSkew=500ms, how far the members' clocks may be apart (250ms); and oneMember=true. Commands that run under a lease
// don't get ETCD_PASSWORD.
package main

import (
	"github.com/slotlease/slotlease/cmd/leasectl/app"
	_ "github.com/slotlease/slotlease/store/etcd" // the scheme
)

func main() { app.Main() }
