package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
)

// Init creates database and container, if they aren't there, with an index of
// what is queried alone, and checks that they are fit for a ledger. What is there
// isn't changed; what is unfit is refused with store.ErrRefused. It needs a key:
// with tokens, Azure lets nobody create containers this way.
func (l *Ledger) Init(ctx context.Context) error {
	err := l.check(ctx)
	if !errors.Is(err, store.ErrMissing) {
		return err
	}
	if err := l.create(ctx); err != nil {
		return err
	}
	// It may have been made by somebody else, in another way.
	return l.check(ctx)
}

// check looks at account and container.
func (l *Ledger) check(ctx context.Context) error {
	_, err := runOn(ctx, l, "init", "", l.reconnected, func(context.Context, *conn) (struct{}, error) { return struct{}{}, nil })
	return err
}

// create makes what isn't there. Somebody else may be doing the same.
func (l *Ledger) create(ctx context.Context) error {
	c, err := l.dial()
	if err != nil {
		return l.failed(ctx, "init", "", err)
	}
	defer c.client.Close()
	defer c.end()
	create := func(what string, do func(context.Context) error) error {
		_, err := runOn(ctx, l, "init", "", func(context.Context) (*conn, error) { return c, nil }, func(ctx context.Context, _ *conn) (struct{}, error) {
			err := do(ctx)
			switch {
			case isStatus(err, http.StatusConflict):
				err = nil
			case isStatus(err, http.StatusForbidden):
				err = fmt.Errorf("%w (a token may not: create it with the portal or az cosmosdb sql, or use a key)", err)
			}
			if err != nil {
				err = fmt.Errorf("create %s: %w", what, err)
			}
			return struct{}{}, err
		})
		return err
	}
	err = create("database "+l.address.database, func(ctx context.Context) error {
		_, err := c.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: l.address.database}, nil)
		return err
	})
	if err != nil {
		return err
	}
	return create("container "+l.address.container, func(ctx context.Context) error {
		database, err := c.client.NewDatabase(l.address.database)
		if err != nil {
			return err
		}
		_, err = database.CreateContainer(ctx, azcosmos.ContainerProperties{
			ID:                     l.address.container,
			PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{partitionPath}, Version: 2},
			IndexingPolicy:         indexing(),
		}, &azcosmos.CreateContainerOptions{ThroughputProperties: l.offer})
		return err
	})
}
