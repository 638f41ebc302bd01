//go:build linux

package main

import "context"

// handover stops the holder in order again and again, and measures how long nobody works.
func handover(ctx context.Context, t *team, r *row, o settings) error {
	holder, err := pair(ctx, t)
	if err != nil {
		return err
	}
	return again(ctx, t, r, holder, o.rounds, t.stop)
}
