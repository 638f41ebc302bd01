package workerlease_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// StartLeasing with a context that has ended, or ends meanwhile.
func TestHostileStartWithEndedContext(t *testing.T) {
	for range 2000 {
		client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w, err := client.StartLeasing(ctx, workerlease.Options{WorkerType: "job"}, workerlease.Callbacks{
			LeaseAllocated: func(context.Context, workerlease.Lease) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		<-w.Done()
	}
}

// An observer that ends its goroutine, as t.FailNow does.
func TestHostileGoexitInObserver(t *testing.T) {
	for _, where := range []string{"Observer", "Error"} {
		t.Run(where, func(t *testing.T) {
			var once sync.Once
			client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{
				Observer: workerlease.ObserverFunc(func(e workerlease.Event) {
					gone := false
					once.Do(func() { gone = true })
					if gone {
						runtime.Goexit()
					}
				}),
			})
			w, err := client.StartLeasing(context.Background(), workerlease.Options{WorkerType: "job"}, workerlease.Callbacks{
				LeaseAllocated: func(context.Context, workerlease.Lease) {},
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond)
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			if err := w.StopLeasing(ctx); err != nil {
				t.Error(err)
			}
			select {
			case <-w.Done():
			case <-time.After(2 * time.Second):
				t.Error("Done is never closed")
			}
		})
	}
}

var _ = fmt.Sprint
var _ = synctest.Test
