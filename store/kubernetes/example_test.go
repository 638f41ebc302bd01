package kubernetes_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/kubernetes"
)

// In a pod, a namespace is enough: the API server and the credentials are those of the pod's service account.
func ExampleOpen() {
	ctx := context.Background()
	config := &rest.Config{Host: "https://10.0.0.1:6443"} // In a pod: leave Config out.
	ledger, err := kubernetes.Open(ctx, kubernetes.Options{URI: "k8s:jobs", Config: config})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ledger.Close(ctx) }()
	fmt.Println(ledger)
	// Output: k8s:jobs at 10.0.0.1:6443
}

// An application that lets its configuration choose the store imports the package for its scheme.
func Example_uri() {
	_, err := store.Open(context.Background(), "k8s:Jobs?serverSkew=never", store.OpenOptions{})
	fmt.Println(err)
	// Output:
	// kubernetes: open: uri: the namespace must be a name of at most 63 lower-case letters, digits and hyphens, without slashes before it
	// uri: parameter serverSkew must be a duration above 0, at most 1h0m0s, such as 500ms
}
