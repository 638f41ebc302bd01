package clocks_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
)

// t stands for the *testing.T of a test.
var t clocks.T = fatal{}

type fatal struct{}

func (fatal) Helper() {}

func (fatal) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

// Two slots of five minutes pass in a few milliseconds.
func ExampleFake() {
	f := clocks.NewFake(time.Date(2026, 1, 1, 12, 1, 0, 0, time.UTC))
	ledger := memory.New(memory.Options{Clock: f})
	w, err := f.NewClient(ledger, workerlease.ClientOptions{}).StartLeasing(context.Background(),
		workerlease.Options{WorkerType: "report"},
		workerlease.Callbacks{
			LeaseAllocated: func(_ context.Context, l workerlease.Lease) {
				fmt.Println("allocated", l.Slot)
			},
			LeaseExpired: func(_ workerlease.Lease, why workerlease.Reason) {
				fmt.Println("expired:", why)
			},
		})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Now().Format(time.TimeOnly))
	f.Advance(t, 5*time.Minute)
	fmt.Println(f.Now().Format(time.TimeOnly))
	f.Advance(t, 5*time.Minute)
	fmt.Println(f.Now().Format(time.TimeOnly))
	if err := w.StopLeasing(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 12:01:00
	// allocated [2026-01-01T12:05:00Z, 2026-01-01T12:10:00Z)
	// 12:06:00
	// expired: window ended
	// allocated [2026-01-01T12:10:00Z, 2026-01-01T12:15:00Z)
	// 12:11:00
	// expired: stopped
}

// A worker takes no harm from a clock that is an hour wrong, or that drifts.
func ExampleSkewed() {
	f := clocks.NewFake(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	wrong := clocks.Skewed(clocks.Drifting(f, 200), -time.Hour)
	f.Advance(t, time.Hour)
	fmt.Println(f.Now().Format(time.TimeOnly), wrong.Now().Format("15:04:05.00"))
	// Output:
	// 13:00:00 12:00:00.72
}
