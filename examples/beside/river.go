package beside

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/slotlease/slotlease/workerlease"
)

// River is a task that inserts a job into river's queue, in place of a periodic job. While both insert it, river keeps one of
// each period: the periodic job must have the same options, [Unique].
func River(client *river.Client[pgx.Tx], args river.JobArgs, period time.Duration) workerlease.Task {
	return func(ctx context.Context, _ workerlease.Lease) error {
		_, err := client.Insert(ctx, args, Unique(period))
		return err
	}
}

// Unique are the options of a job of which there is one in each period. Periods begin where slots of the same length do.
func Unique(period time.Duration) *river.InsertOpts {
	return &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: period}}
}
