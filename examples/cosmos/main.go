// Cosmos runs a worker on a ledger in Azure Cosmos DB for three slots of five
// seconds, and fences its work: the item that it writes remembers the token of its
// last writer, and a lower one, of a lease that was over unnoticed, is refused.
//
//	COSMOS_CONNECTION_STRING='AccountEndpoint=https://…;AccountKey=…;' go run ./examples/cosmos
//
// Start it several times to see the slots shared out. For an emulator on this
// machine the endpoint may be plain http.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	database := flag.String("database", "slotlease", "`name` of the database for leases and reports")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("COSMOS_CONNECTION_STRING"), *database); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, connection, database string) (err error) {
	if connection == "" {
		return errors.New("set COSMOS_CONNECTION_STRING: the portal shows it under Keys")
	}
	ledger, err := cosmos.Open(ctx, cosmos.Options{ConnectionString: connection, Database: database})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close(context.WithoutCancel(ctx))) }()
	fmt.Println("the ledger is", ledger)
	// A worker would wait for its store for ever. Here, find out whether there is one.
	starting, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	if err := ledger.Init(starting); err != nil {
		return fmt.Errorf("is there an account? COSMOS_CONNECTION_STRING says where: %w", err)
	}
	if warning := ledger.Account().Warning(); warning != "" {
		fmt.Println("warning:", warning)
	}
	reports, err := container(starting, connection, database, "Reports")
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var slots atomic.Int32
	worker, err := workerlease.StartLeasing(ctx, ledger,
		workerlease.Options{WorkerType: "report", LeaseInterval: 3 * time.Second},
		workerlease.Callbacks{
			LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
				if err := publish(ctx, reports, l); err != nil {
					fmt.Fprintln(os.Stderr, "cosmos: publish:", err)
					return
				}
				fmt.Printf("%s  published under token %d\n", l.Slot.Start.Format(time.TimeOnly), l.Token)
			},
			LeaseExpired: func(workerlease.Lease, workerlease.Reason) {
				if slots.Add(1) == 3 {
					cancel()
				}
			},
		})
	if err != nil {
		return err
	}
	<-worker.Done() // the end of ctx stops it
	fmt.Printf("leasing was charged %.1f request units\n", worker.Status().Charges.Total())
	return nil
}

// container is one for the worker's own data. It is made if it isn't there.
func container(ctx context.Context, connection, database, name string) (*azcosmos.ContainerClient, error) {
	// Without TLS keys are sent to an emulator only: cosmos.Open has seen to that.
	plain := strings.Contains(connection, "AccountEndpoint=http://")
	client, err := azcosmos.NewClientFromConnectionString(connection, &azcosmos.ClientOptions{
		ClientOptions: policy.ClientOptions{InsecureAllowCredentialWithHTTP: plain},
	})
	if err != nil {
		return nil, err
	}
	within, err := client.NewDatabase(database)
	if err != nil {
		return nil, err
	}
	_, err = within.CreateContainer(ctx, azcosmos.ContainerProperties{
		ID:                     name,
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}},
	}, nil)
	if err != nil && status(err) != http.StatusConflict {
		return nil, err
	}
	return within.NewContainer(name)
}

// report is the item that is fenced.
type report struct {
	ID    string    `json:"id"`
	Token int64     `json:"token"`
	By    string    `json:"by"`
	Slot  time.Time `json:"slot"`
}

// publish writes the report unless a higher token has. It replaces nothing but
// what it has read, so that of two writers one reads again.
func publish(ctx context.Context, reports *azcosmos.ContainerClient, l workerlease.Lease) error {
	mine, err := json.Marshal(report{ID: l.WorkerType, Token: l.Token, By: l.InstanceID, Slot: l.Slot.Start})
	if err != nil {
		return err
	}
	key := azcosmos.NewPartitionKeyString(l.WorkerType)
	_, err = reports.CreateItem(ctx, key, mine, nil)
	for status(err) == http.StatusConflict || status(err) == http.StatusPreconditionFailed {
		read, readErr := reports.ReadItem(ctx, key, l.WorkerType, nil)
		if readErr != nil {
			return readErr
		}
		var theirs report
		if err := json.Unmarshal(read.Value, &theirs); err != nil {
			return err
		}
		if theirs.Token > l.Token {
			return errors.New("a later lease has written already")
		}
		_, err = reports.ReplaceItem(ctx, key, l.WorkerType, mine, &azcosmos.ItemOptions{IfMatchEtag: &read.ETag})
	}
	return err
}

// status is the HTTP status of an error, or 0.
func status(err error) int {
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return e.StatusCode
	}
	return 0
}
