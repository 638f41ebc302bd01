package workerlease_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(memory.Options{})
		t0 := time.Now()
		var mu sync.Mutex
		logf := func(f string, a ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Printf("%10v %s\n", time.Since(t0), fmt.Sprintf(f, a...))
		}
		var ws []*workerlease.WorkerLease
		for i := range 3 {
			c := workerlease.NewClient(l, workerlease.ClientOptions{Clock: clock.New(), Observer: workerlease.ObserverFunc(func(e workerlease.Event) {
				logf("%d %T %+v", i, e, e)
			})})
			w, err := c.StartLeasing(t.Context(), workerlease.Options{WorkerType: "a", InstanceID: fmt.Sprint("w", i), Priority: i}, workerlease.Callbacks{
				LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
					logf("ALLOCATED %d %v rem %v", i, l.Slot, l.Remaining())
					<-ctx.Done()
					logf("DONE %d %v", i, context.Cause(ctx))
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			ws = append(ws, w)
		}
		time.Sleep(11 * time.Minute)
		for _, w := range ws {
			if err := w.StopLeasing(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
