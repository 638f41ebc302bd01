//go:build unix

package workerlease_test

import (
	"context"
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
		slotDelay(b, ledger)
	})
}

func slotDelay(b *testing.B, ledger store.Ledger) {
	late := make(chan time.Duration, 1)
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: workerlease.ObserverFunc(func(e workerlease.Event) {
		if a, ok := e.(workerlease.Allocated); ok {
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

// BenchmarkSlotSimulated runs slots of 5 min on a fake clock: which share of them
// LeaseAllocated may work in, and what a slot costs one worker in CPU time (with
// that of the fake clock, which also makes the time per operation meaningless).
func BenchmarkSlotSimulated(b *testing.B) {
	mock := clock.NewMock()
	mock.Set(t0)
	var began, worked time.Duration
	client := workerlease.NewClient(memory.New(memory.Options{Clock: mock}), workerlease.ClientOptions{Clock: mock})
	w, err := client.StartLeasing(b.Context(), workerlease.Options{WorkerType: "job"}, workerlease.Callbacks{
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
	end := t0.Add(5 * time.Minute)
	slot(end)
	n, cpu := 0, cpuTime(b)
	for b.Loop() {
		end = end.Add(5 * time.Minute)
		slot(end)
		n++
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/1e3/float64(n), "cpu-µs/slot")
	b.ReportMetric(100*float64(worked)/float64(time.Duration(n)*5*time.Minute), "share-%")
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
