package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func TestOnlyTheHolderRunsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		time.Sleep(500 * time.Millisecond) // between two boundaries
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		const anna, ben = "anna runs the job\n", "ben runs the job\n"
		// She holds the lease from the start to 7.5 s, and he from the end of her window.
		want := strings.Repeat(anna, 7) + "anna stops\n" + strings.Repeat(ben, 4)
		if out.String() != want {
			t.Errorf("output:\n%s\nwant:\n%s", &out, want)
		}
	})
}

func TestAJobEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{})
		w, err := client.StartLeasing(t.Context(), workerlease.Options{WorkerType: "job", LeaseInterval: time.Minute},
			workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {}})
		if err != nil {
			t.Fatal(err)
		}
		only := cron.NewChain(OnlyHolder(t.Context(), w, cron.DiscardLogger))
		ran, plain := 0, 0
		job := only.Then(Leased(func(ctx context.Context, l workerlease.Lease) error {
			ran++
			<-ctx.Done()
			if cause := context.Cause(ctx); l.Valid() || !errors.Is(cause, workerlease.ErrLeaseExpired) {
				t.Errorf("the context ended with %v, valid %v, want the end of the lease", cause, l.Valid())
			}
			return nil
		}))
		job.Run() // before the first slot
		if ran != 0 {
			t.Error("the job ran without a lease")
		}
		time.Sleep(time.Minute + 30*time.Second)
		job.Run()
		if now := time.Now(); ran != 1 || now.Minute() != 1 || now.Second() != 59 {
			t.Errorf("the job ran %d times, and returned at %v, want one, and the end of the slot", ran, now)
		}
		time.Sleep(30 * time.Second)
		only.Then(cron.FuncJob(func() { plain++ })).Run()
		if plain != 1 {
			t.Errorf("a plain job ran %d times, want one", plain)
		}
		if err := w.StopLeasing(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
