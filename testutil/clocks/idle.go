package clocks

import (
	"runtime"
	"runtime/metrics"
	"time"
)

const (
	// One look at the scheduler isn't a snapshot, so several in a row count.
	looks   = 3
	lookGap = 50 * time.Microsecond
	// maxLooks bounds the wait for a busy process: 20 ms, and what sleeping takes
	// longer than it was asked for. A system call may never end, such as a read of
	// an idle terminal; it counts for a few looks only.
	maxLooks     = 400
	maxCallLooks = 10
)

// idle waits until no other goroutine is running or ready to run, as far as the Go
// scheduler reports, but not for long if others stay busy.
func idle() {
	samples := []metrics.Sample{
		{Name: "/sched/goroutines/running:goroutines"},
		{Name: "/sched/goroutines/runnable:goroutines"},
		{Name: "/sched/goroutines/not-in-go:goroutines"},
	}
	for n, calm := 0, 0; n < maxLooks && calm < looks; n++ {
		runtime.Gosched()
		metrics.Read(samples)
		running, runnable, calls := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
		if running > 1 || runnable > 0 || calls > 0 && n < maxCallLooks {
			calm = 0
			time.Sleep(lookGap)
			continue
		}
		calm++
	}
}
