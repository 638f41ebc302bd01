// Command server is Kubernetes' kube-apiserver, built from its source, for package kubepeer. It is a module of its own,
// because Kubernetes' is no library: it names no versions of its parts, which this go.mod does. The
// Makefile reads the version there; after a change of it, go mod tidy.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
