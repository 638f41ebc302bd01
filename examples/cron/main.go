// Cron leases the slots of a cron schedule in a time zone: from one 02:30 in
// Berlin to the next. It lists the slots around the two changes of the clocks in
// 2027, starts leasing, shows what the worker waits for, and ends.
//
//	go run ./examples/cron
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		return err
	}
	schedule, err := slots.Cron("30 2 * * *", "Europe/Berlin")
	if err != nil {
		return err
	}
	list(schedule, time.Date(2027, time.March, 26, 12, 0, 0, 0, berlin))
	list(schedule, time.Date(2027, time.October, 29, 12, 0, 0, 0, berlin))

	ledger := memory.New(memory.Options{})
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()
	worker, err := workerlease.StartLeasing(ctx, ledger,
		workerlease.Options{WorkerType: "nightly-report", InstanceID: "anna", Schedule: schedule},
		workerlease.Callbacks{
			LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
				fmt.Println("allocated", l.Slot)
				<-ctx.Done()
			},
		})
	if err != nil {
		return err
	}
	// A moment later it knows the store's time, and with it the slot to come.
	for ctx.Err() == nil && worker.Status().Contending.IsZero() {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println(worker.Status())
	fmt.Println("healthy:", worker.Status().Healthy())

	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return worker.StopLeasing(limited)
}

// list shows four slots by the local clock. Where 02:30 doesn't exist, the slot
// starts at the first instant after the gap; where it comes twice, at the first.
func list(s slots.Schedule, from time.Time) {
	n := 0
	for slot := range slots.Upcoming(s, from) {
		start := slot.Start.In(from.Location())
		fmt.Printf("%s %-4s  lasts %v\n", start.Format("Mon 2006-01-02 15:04"), start.Format("MST"), slot.Length())
		if n++; n == 4 {
			break
		}
	}
	fmt.Println()
}
