package redis_test

import (
	"context"
	"fmt"
	"log"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/redis"
)

func ExampleOpen() {
	ctx := context.Background()
	ledger, err := redis.Open(ctx, redis.Options{URI: "rediss://worker:secret@redis.example.com/0?replicas=1"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = ledger.Close(ctx) }()
	fmt.Println(ledger)
	// Output: rediss://worker:***@redis.example.com:6379/0?replicas=1
}

// An application that imports this package opens its URIs by store.Open, too.
func Example_registered() {
	_, err := store.Open(context.Background(), "redis://worker:secret@redis.example.com/zero?replica=1", store.OpenOptions{})
	fmt.Println(err)
	// Output:
	// redis: open: uri: the database must be a number such as 0
	// uri: parameter replica is unknown: use prefix, replicas, replicaWait, serverSkew, unsafeNoPersistence or insecureSkipVerify
}
