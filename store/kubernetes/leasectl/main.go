// Command leasectl is github.com/slotlease/slotlease/cmd/leasectl, and opens ledgers in Kubernetes, too:
//
//	export LEASECTL_STORE=k8s:jobs
//
// Build it in a clone, until this module is released: its go.mod has a replace directive, which go install with a version refuses.
//
//	cd store/kubernetes && go install ./leasectl
//
// In a pod it uses the service account, and elsewhere a kubeconfig. Without a namespace, k8s: is that of the pod or of the
// kubeconfig's context. The parameters of the URI are kubeconfig=PATH and context=NAME; serverSkew=500ms, how far the clocks of
// the API servers may be apart (250ms); and oneServer=true. Tokens come from the kubeconfig or the pod alone, and are never shown.
package main

import (
	"github.com/slotlease/slotlease/cmd/leasectl/app"
	_ "github.com/slotlease/slotlease/store/kubernetes" // the scheme
)

func main() { app.Main() }
