//go:build unix

package workerlease_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// BenchmarkSlotDelay measures how long after the boundary LeaseAllocated is
// called, on the real clock with slots of 200 ms; the uncertainty of store time
// then is a part of it. An operation is a slot.
func BenchmarkSlotDelay(b *testing.B) {
	b.Run("memory", func(b *testing.B) { slotDelay(b, memory.New(memory.Options{})) })
	b.Run("sqlite", func(b *testing.B) {
		ledger, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(b.TempDir(), "leases.db")})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = ledger.Close(context.Background()) }()
		if err := ledger.Init(b.Context()); err != nil {
			b.Fatal(err)
		}
		slotDelay(b, ledger)
	})
}

func slotDelay(b *testing.B, ledger store.Ledger) {
	late := make(chan time.Duration, 1)
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: event.ObserverFunc(func(e event.Event) {
		if a, ok := e.(event.Allocated); ok {
			late <- a.Late
		}
	})})
	w, err := client.StartLeasing(b.Context(), workerlease.Options{WorkerType: "job", LeaseInterval: 200 * time.Millisecond},
		workerlease.Callbacks{LeaseAllocated: nothing})
	if err != nil {
		b.Fatal(err)
	}
	<-late
	var delays, uncertain []time.Duration
	for b.Loop() {
		delays = append(delays, <-late)
		uncertain = append(uncertain, w.Status().Uncertainty)
	}
	b.ReportMetric(percentile(delays, 50), "p50-µs")
	b.ReportMetric(percentile(delays, 99), "p99-µs")
	b.ReportMetric(percentile(uncertain, 50), "uncertainty-µs")
	go func() {
		for range late {
		}
	}()
	if err := w.StopLeasing(context.Background()); err != nil {
		b.Error(err)
	}
	close(late)
}

// percentile is the p-th percentile in µs.
func percentile(d []time.Duration, p int) float64 {
	slices.Sort(d)
	return float64(d[(len(d)-1)*p/100]) / 1e3
}

// stamped is a ledger whose time comes in stamps of another store's. Appends show it, too.
type stamped struct {
	store.Ledger

	precision, age, skew time.Duration
}

func (l stamped) stamp(s store.Stamp) store.Stamp {
	s.Time, s.Granularity, s.MaxAge, s.Skew = s.Time.Truncate(l.precision), l.precision, l.age, l.skew
	return s
}

func (l stamped) Now(ctx context.Context) (store.Stamp, error) {
	s, err := l.Ledger.Now(ctx)
	return l.stamp(s), err
}

func (l stamped) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, s, err := l.Ledger.Tail(ctx, workerType, limit)
	return records, l.stamp(s), err
}

func (l stamped) Append(ctx context.Context, r store.Record) error {
	err := l.Ledger.Append(ctx, r)
	if s, failed := l.Ledger.Now(ctx); err == nil && failed == nil {
		store.Tell(ctx, l.stamp(s))
	}
	return err
}

// BenchmarkSlotSimulated runs slots on a fake clock, with the stamps of each kind of store: which share of them
// LeaseAllocated may work in, and what a slot costs one worker in CPU time (with
// that of the fake clock, which also makes the time per operation meaningless). Operations take no time.
func BenchmarkSlotSimulated(b *testing.B) {
	for _, s := range []struct {
		name                 string
		precision, age, skew time.Duration
	}{
		{"one clock", time.Microsecond, 0, 0},
		{"clocks within 100ms", time.Microsecond, 0, 100 * time.Millisecond},
		{"clocks within 250ms", time.Millisecond, 0, 250 * time.Millisecond},
		{"whole seconds within 250ms", time.Second, 0, 250 * time.Millisecond},
		{"whole seconds a second old within 250ms", time.Second, time.Second, 250 * time.Millisecond},
	} {
		for _, slot := range []time.Duration{10 * time.Second, 5 * time.Minute} {
			b.Run(fmt.Sprint(s.name, "/", slot), func(b *testing.B) {
				slotSimulated(b, slot, func(l store.Ledger) store.Ledger { return stamped{l, s.precision, s.age, s.skew} })
			})
		}
	}
}

func slotSimulated(b *testing.B, length time.Duration, with func(store.Ledger) store.Ledger) {
	mock := clock.NewMock()
	mock.Set(t0)
	var began, worked time.Duration
	client := workerlease.NewClient(with(memory.New(memory.Options{Clock: mock})), workerlease.ClientOptions{Clock: mock})
	w, err := client.StartLeasing(b.Context(), workerlease.Options{WorkerType: "job", LeaseInterval: length}, workerlease.Callbacks{
		LeaseAllocated: func(context.Context, workerlease.Lease) { began = mock.Now().Sub(t0) },
		LeaseExpired:   func(workerlease.Lease, workerlease.Reason) { worked += mock.Now().Sub(t0) - began },
	})
	if err != nil {
		b.Fatal(err)
	}
	slot := func(end time.Time) {
		for {
			next, err := client.Settle(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if !next.Before(end) {
				mock.Set(end)
				return
			}
			mock.Set(next)
		}
	}
	end := t0
	for range 3 { // in which the worker comes to know the time
		end = end.Add(length)
		slot(end)
	}
	worked = 0
	n, cpu := 0, cpuTime(b)
	for b.Loop() {
		end = end.Add(length)
		slot(end)
		n++
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/1e3/float64(n), "cpu-µs/slot")
	b.ReportMetric(100*float64(worked)/float64(time.Duration(n)*length), "share-%")
	b.ReportMetric(float64((time.Duration(n)*length-worked).Milliseconds())/float64(n), "lost-ms/slot")
	if err := w.StopLeasing(context.Background()); err != nil {
		b.Error(err)
	}
}

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
