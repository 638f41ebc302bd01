// Package filelock lets whoever asks something of a ledger in a file know that it waits for another process.
package filelock

import (
	"context"
	"time"
)

type key struct{}

// Watched is a context whose operations call waits each time that they find the file locked, with how long they have waited
// for that. It may be called by several goroutines.
func Watched(ctx context.Context, waits func(waited time.Duration)) context.Context {
	return context.WithValue(ctx, key{}, waits)
}

// Found tells whoever wants to know that an operation has found the file locked.
func Found(ctx context.Context, waited time.Duration) {
	if waits, ok := ctx.Value(key{}).(func(time.Duration)); ok {
		waits(waited)
	}
}
