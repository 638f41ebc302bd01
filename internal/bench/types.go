//go:build unix

package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// typesFigures are what many worker types on one client cost. All have one boundary.
type typesFigures struct {
	Store                    string
	Types, Slots             int
	Slot                     time.Duration
	Leases, Wanted           int64
	LateP50, LateP99, LateIn time.Duration // after the boundary, of LeaseAllocated; LateIn is the latest
	CPU                      time.Duration // of the process, a slot
	Bytes                    uint64        // of memory, an idle worker
	Goroutines               float64       // an idle worker
	Now, Tails, Appends      float64       // operations of the store, a slot
}

func (f typesFigures) String() string {
	return fmt.Sprintf(`%d worker types on %s, %d slots of %v
leases      %d of %d
late        p50 %v, p99 %v, at most %v
processor   %v a slot
memory      %d bytes and %.2f goroutines an idle worker
operations  %.0f now, %.0f tail, %.0f append a slot`,
		f.Types, f.Store, f.Slots, f.Slot, f.Leases, f.Wanted, f.LateP50, f.LateP99, f.LateIn, f.CPU,
		f.Bytes, f.Goroutines, f.Now, f.Tails, f.Appends)
}

// counted counts the operations of a ledger.
type counted struct {
	store.Ledger
	now, tails, appends atomic.Int64
}

func (c *counted) Now(ctx context.Context) (store.Stamp, error) {
	c.now.Add(1)
	return c.Ledger.Now(ctx)
}

func (c *counted) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	c.tails.Add(1)
	return c.Ledger.Tail(ctx, workerType, limit)
}

func (c *counted) Append(ctx context.Context, r store.Record) error {
	c.appends.Add(1)
	return c.Ledger.Append(ctx, r)
}

// types runs one worker of each of many types on one client.
func types(ctx context.Context, l store.Ledger, o settings) (any, error) {
	ledger := &counted{Ledger: l}
	schedule, err := slots.Every(o.slot)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	late := map[time.Time][]time.Duration{} // by the beginning of the slot
	allocated := func(_ context.Context, lease workerlease.Lease) {
		d := time.Since(lease.Slot.Start)
		mu.Lock()
		late[lease.Slot.Start] = append(late[lease.Slot.Start], d)
		mu.Unlock()
	}
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{})
	idle := resources()
	workers := make([]*workerlease.WorkerLease, o.types)
	for i := range workers {
		workers[i], err = client.StartLeasing(ctx, workerlease.Options{WorkerType: fmt.Sprintf("type-%05d", i), LeaseInterval: o.slot},
			workerlease.Callbacks{LeaseAllocated: allocated})
		if err != nil {
			return nil, err
		}
	}
	// The first two boundaries are those of workers that have only just been started.
	first := schedule.Next(schedule.Next(time.Now()).Start).Start.Add(o.slot)
	if err := until(ctx, first.Add(-o.slot/2)); err != nil {
		return nil, err
	}
	f := typesFigures{Store: o.store, Types: o.types, Slots: o.slots, Slot: o.slot, Wanted: int64(o.types) * int64(o.slots)}
	began := resources()
	f.Bytes = (began.bytes - min(idle.bytes, began.bytes)) / uint64(o.types)
	f.Goroutines = float64(began.goroutines-idle.goroutines) / float64(o.types)
	now, tails, appends := ledger.now.Load(), ledger.tails.Load(), ledger.appends.Load()
	if err := until(ctx, first.Add(time.Duration(o.slots)*o.slot-o.slot/2)); err != nil {
		return nil, err
	}
	n := float64(o.slots)
	f.CPU = (cpu() - began.cpu) / time.Duration(o.slots)
	f.Now, f.Tails, f.Appends = float64(ledger.now.Load()-now)/n, float64(ledger.tails.Load()-tails)/n, float64(ledger.appends.Load()-appends)/n
	mu.Lock()
	var all []time.Duration
	for i := range o.slots {
		all = append(all, late[first.Add(time.Duration(i)*o.slot)]...)
	}
	mu.Unlock()
	f.Leases = int64(len(all))
	if slices.Sort(all); len(all) > 0 {
		f.LateP50, f.LateP99, f.LateIn = percentile(all, 50), percentile(all, 99), all[len(all)-1]
	}
	stopAll(workers)
	return f, nil
}

func stopAll(workers []*workerlease.WorkerLease) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() { _ = w.StopLeasing(ctx) })
	}
	all.Wait()
}

// percentile is the p-th percentile of what is sorted.
func percentile(d []time.Duration, p int) time.Duration {
	return d[(len(d)-1)*p/100].Round(10 * time.Microsecond)
}

// until waits for a time.
func until(ctx context.Context, t time.Time) error {
	select {
	case <-time.After(time.Until(t)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// used is what this process uses.
type used struct {
	bytes      uint64
	goroutines int
	cpu        time.Duration
}

func resources() used {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return used{bytes: m.HeapAlloc + m.StackInuse, goroutines: runtime.NumGoroutine(), cpu: cpu()}
}

// cpu is the processor time of this process, and zero if the system doesn't say.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
