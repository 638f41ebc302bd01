package etcd_test

import (
	"context"
	"fmt"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/etcd"
)

func ExampleOpen() {
	ctx := context.Background()
	ledger, err := etcd.Open(ctx, etcd.Options{URI: "etcd://10.0.0.1,10.0.0.2,10.0.0.3/team/jobs", User: "worker", Password: "…"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ledger.Close(ctx) }()
	fmt.Println(ledger)
	// Output: etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/team/jobs
}

// An application that lets its configuration choose the store imports the package for its scheme.
func Example_uri() {
	ctx := context.Background()
	_, err := store.Open(ctx, "etcd://10.0.0.1/a//b?oneMember=maybe", store.OpenOptions{})
	fmt.Println(err)
	// Output:
	// etcd: open: uri: the prefix must be names of letters, digits, dots, underscores and hyphens with slashes between them, and have at most 200 bytes
	// uri: parameter oneMember must be true or false
}
