package linear_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/workload"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// recorded is a history of about 10,000 operations on one worker type.
func recorded(b *testing.B) *linear.History {
	b.Helper()
	h := linear.NewHistory()
	l := jostled{memory.New(memory.Options{})}
	var wg sync.WaitGroup
	for i := range clients {
		name := fmt.Sprint("client-", i)
		c := workload.New(h.Client(name, l), clock.New(), time.Second, name, 1)
		wg.Go(func() {
			c.Work(b.Context(), workload.Plan{WorkerType: "job", Keys: store.MaxSeq, Calls: 10_000 / clients, Keep: 100})
		})
	}
	wg.Wait()
	return h
}

func BenchmarkCheckOf10000Operations(b *testing.B) {
	h := recorded(b)
	for b.Loop() {
		if _, err := h.Check(patience); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(h.Len()), "operations")
}

func BenchmarkRecordingATail(b *testing.B) {
	h := linear.NewHistory()
	inner := memory.New(memory.Options{})
	if err := inner.Append(b.Context(), storetest.Grant("job", 1)); err != nil {
		b.Fatal(err)
	}
	l := h.Client("a", inner)
	for b.Loop() {
		if _, _, err := l.Tail(b.Context(), "job", 1); err != nil {
			b.Fatal(err)
		}
	}
}
