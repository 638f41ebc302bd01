// Command leasectl is github.com/slotlease/slotlease/cmd/leasectl, and opens ledgers in every store: in etcd, Kubernetes and NATS, too.
// It is the one that is released.
//
// Build it in a clone; the tag leaves out the traces of gRPC, which nobody asks for, and more than a quarter of the program with them:
//
//	cd cmd/full && go install -tags grpcnotrace ./leasectl
package main

import (
	_ "golang.org/x/crypto/x509roots/fallback" // root certificates, where the system has none, as in an image from scratch

	"github.com/slotlease/slotlease/cmd/leasectl/app"
	_ "github.com/slotlease/slotlease/store/etcd" // the schemes
	_ "github.com/slotlease/slotlease/store/kubernetes"
	_ "github.com/slotlease/slotlease/store/nats"
)

func main() { app.Main() }
