package cosmosfence_test

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/cosmosfence"
)

// A task marks an invoice as sent, unless another holder has. It needs an account to run.
func ExampleUpdate() {
	var invoices *azcosmos.ContainerClient // of a client of azcosmos
	task := func(ctx context.Context, l workerlease.Lease) error {
		customer := azcosmos.NewPartitionKeyString("customer-3")
		err := cosmosfence.Update(ctx, invoices, customer, "7", l.Token, func(old cosmosfence.Item) (cosmosfence.Item, error) {
			if old == nil {
				return nil, errors.New("there is no invoice 7")
			}
			old["sent"] = true
			return old, nil
		})
		if errors.Is(err, fence.ErrStale) {
			return nil // a newer holder does the work
		}
		return err
	}
	_ = task // for workerlease.Run
}
