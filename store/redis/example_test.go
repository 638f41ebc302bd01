package redis_test

import (
	"context"
	"fmt"
	"log"
	"os"

	goredis "github.com/redis/go-redis/v9"

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

// The ledger connects and logs in as the application's own client does, and leaves it open.
func ExampleOpen_client() {
	ctx := context.Background()
	client := goredis.NewClient(&goredis.Options{Addr: "redis.example.com:6379"})
	defer func() { _ = client.Close() }()
	ledger, err := redis.Open(ctx, redis.Options{Client: client, Replicas: 1})
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = ledger.Close(ctx) }()
	fmt.Println(ledger)
	// Output: redis://redis.example.com:6379/0?replicas=1
}

// A password that rotates is read again for each connection.
func ExampleOpen_passwordFunc() {
	ctx := context.Background()
	ledger, err := redis.Open(ctx, redis.Options{
		URI: "rediss://redis.example.com", Username: "worker",
		PasswordFunc: func(context.Context) (string, error) {
			password, err := os.ReadFile("/run/secrets/redis")
			return string(password), err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = ledger.Close(ctx) }()
	fmt.Println(ledger)
	// Output: rediss://redis.example.com:6379/0
}

// An application that imports this package opens its URIs by store.Open, too.
func Example_registered() {
	_, err := store.Open(context.Background(), "redis://worker:secret@redis.example.com/zero?replica=1", store.OpenOptions{})
	fmt.Println(err)
	// Output:
	// redis: open: uri: the database must be a number such as 0
	// uri: parameter replica is unknown: use prefix, replicas, replicaWait, serverSkew, unsafeNoPersistence, insecureSkipVerify
}
