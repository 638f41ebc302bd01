package workerlease_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// A check that hangs hides neither that a lease isn't released, nor that one is.
func TestStoppingWhileTheCheckHangs(t *testing.T) {
	for name, down := range map[string]bool{"the store answers": false, "the store is down": true} {
		bubble(t, name, func(t *testing.T) {
			var hangs, fails atomic.Bool
			end := make(chan struct{})
			h := &hooked{Ledger: memory.New(memory.Options{}), before: func() error {
				if fails.Load() {
					return errUnwell
				}
				return nil
			}}
			o := named("a", 0)
			o.WorkerType, o.LeaseInterval = "job", time.Minute
			o.EligibleEvery, o.EligibleTimeout = 2*time.Second, 2*time.Second
			o.Eligible = func(context.Context) error {
				if hangs.Load() {
					<-end
				}
				return nil
			}
			client := workerlease.NewClient(h, workerlease.ClientOptions{})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- client.Run(ctx, o, func(ctx context.Context, _ workerlease.Lease) error { <-ctx.Done(); return nil })
			}()
			at(66 * time.Second)
			hangs.Store(true)
			at(69 * time.Second)
			fails.Store(down)
			cancel()
			at(90 * time.Second)
			err := <-done
			if err == nil || errors.Is(err, workerlease.ErrNotReleased) != down || strings.Contains(err.Error(), "store did not answer") != down {
				t.Errorf("Run() = %v", err)
			}
			close(end)
			at(100 * time.Second)
		})
	}
}
