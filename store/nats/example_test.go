package nats_test

import (
	"context"
	"fmt"

	"github.com/slotlease/slotlease/store/nats"
)

func ExampleOpen() {
	ctx := context.Background()
	ledger, err := nats.Open(ctx, nats.Options{URI: "nats://10.0.0.1,10.0.0.2,10.0.0.3/leases?creds=/etc/leases.creds&tls=true"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ledger.Close(ctx) }()
	fmt.Println(ledger)
	// Output: nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222/leases
}
