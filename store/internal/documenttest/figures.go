package documenttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
	"github.com/slotlease/slotlease/workerlease"
)

const (
	// figuresSlot is the length of the slots of BenchmarkFigures.
	figuresSlot = 10 * time.Second
	// figuresCalls is how many appends and tails it measures.
	figuresCalls = 300
)

// BenchmarkFigures measures what docs/stores/figures.md says of each store: how long an append and a tail of two records take,
// and which share of slots of 10 s two workers work in, with a ledger of open's each, on the real clock: from the call of
// LeaseAllocated to the end of its context. An operation is a slot: run it with -benchtime 5x. Two slots before that are
// not counted, in which the workers come to know the time. The ledgers must be initialised, and are the caller's to close.
func BenchmarkFigures(b *testing.B, open func() store.Ledger) {
	b.Helper()
	appends, tails := latencies(b, open())
	shifts := make(chan time.Duration, 1000)
	var workers []*workerlease.WorkerLease
	defer func() {
		for _, w := range workers {
			_ = w.StopLeasing(context.Background())
		}
	}()
	for i := range 2 {
		// Their turns are far apart, so that the first has each slot, and they don't race for it.
		o := workerlease.Options{WorkerType: "job", InstanceID: fmt.Sprint("worker-", i), Priority: 7 * i, LeaseInterval: figuresSlot}
		w, err := workerlease.StartLeasing(b.Context(), open(), o, workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) {
			began := time.Now()
			<-ctx.Done()
			shifts <- time.Since(began)
		}})
		Must(b, "StartLeasing()", err)
		workers = append(workers, w)
	}
	next := func() (worked time.Duration) {
		select {
		case worked = <-shifts:
		case <-time.After(time.Minute):
			b.Fatal("nobody has held a slot for a minute")
		}
		return worked
	}
	for range 2 {
		next()
	}
	began := time.Now()
	var worked, uncertain time.Duration
	for b.Loop() {
		worked += next()
		for _, w := range workers {
			uncertain = max(uncertain, w.Status().Uncertainty)
		}
	}
	passed := time.Since(began).Round(figuresSlot) // A slot that nobody had is lost.
	b.ReportMetric(100*float64(worked)/float64(passed), "share-%")
	b.ReportMetric(milliseconds(passed-worked)/float64(passed/figuresSlot), "lost-ms/slot")
	b.ReportMetric(milliseconds(uncertain), "uncertain-±ms")
	for name, all := range map[string][]time.Duration{"append": appends, "tail": tails} {
		slices.Sort(all)
		b.ReportMetric(milliseconds(all[len(all)/2]), name+"-p50-ms")
		b.ReportMetric(milliseconds(all[len(all)*99/100]), name+"-p99-ms")
	}
}

// latencies are those of appends and tails, one after the other.
func latencies(b *testing.B, l store.Ledger) (appends, tails []time.Duration) {
	b.Helper()
	for seq := range int64(figuresCalls) {
		began := time.Now()
		Must(b, "Append()", l.Append(b.Context(), storetest.Grant("figures", seq+1)))
		looked := time.Now()
		_, _, err := l.Tail(b.Context(), "figures", 2)
		Must(b, "Tail()", err)
		appends, tails = append(appends, looked.Sub(began)), append(tails, time.Since(looked))
	}
	return appends, tails
}

// BenchmarkOperations reports what most operations of a ledger take, and what nearly all do.
func BenchmarkOperations(b *testing.B, name string, l store.Ledger) {
	b.Helper()
	workerType := "bench-" + strings.ReplaceAll(name, " ", "-")
	seq := int64(0)
	for what, call := range map[string]func(ctx context.Context) error{
		"append": func(ctx context.Context) error { seq++; return l.Append(ctx, storetest.Grant(workerType, seq)) },
		"tail":   func(ctx context.Context) error { _, _, err := l.Tail(ctx, workerType, 2); return err },
		"now":    func(ctx context.Context) error { _, err := l.Now(ctx); return err },
	} {
		b.Run(name+"/"+what, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				Must(b, what, call(b.Context()))
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(milliseconds(took[len(took)/2]), "p50-ms")
			b.ReportMetric(milliseconds(took[len(took)*99/100]), "p99-ms")
		})
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
