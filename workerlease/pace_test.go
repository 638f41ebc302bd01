package workerlease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// paced is a ledger whose clock is known poorly.
type paced struct {
	store.Ledger
	floor time.Duration
}

func (p paced) Describe() store.Description { return store.Description{FailoverFloor: p.floor} }

func TestAFailoverThatTheStoresClockIsTooPoorForIsRefused(t *testing.T) {
	t.Parallel()
	nothing := Callbacks{LeaseAllocated: func(context.Context, Lease) {}}
	task := func(context.Context, Lease) error { return nil }
	for name, c := range map[string]struct {
		floor time.Duration
		o     Options
		field string // of the one problem; empty if there is none
		says  string
		want  time.Duration // FailoverWithin as it is in force
	}{
		"below the floor":     {8 * time.Second, Options{LeaseInterval: time.Minute, FailoverWithin: 9 * time.Second}, "FailoverWithin", "FailoverWithin: is 9s: must be 0 (none), or at least 9.1s on this store, which knows the time too poorly for shorter parts of a slot", 0},
		"at the floor":        {8 * time.Second, Options{LeaseInterval: time.Minute, FailoverWithin: 9100 * time.Millisecond}, "", "", 9100 * time.Millisecond},
		"none":                {8 * time.Second, Options{LeaseInterval: time.Minute}, "", "", 0},
		"no floor":            {0, Options{LeaseInterval: time.Minute, FailoverWithin: time.Second}, "", "", time.Second},
		"a job of long slots": {8 * time.Second, Options{LeaseInterval: time.Minute, Job: &Job{}}, "", "", 15 * time.Second},
		"a job of 20 s":       {8 * time.Second, Options{LeaseInterval: 20 * time.Second, Job: &Job{}}, "", "", 8900 * time.Millisecond},
		"a job of 15 s":       {8 * time.Second, Options{LeaseInterval: 15 * time.Second, Job: &Job{}}, "LeaseInterval", "makes slots of 15s, and Job is set: they are too short for others to try again on this store, which knows the time poorly: must be at least 17.4s", 0},
		"slots of 2 s":        {8 * time.Second, Options{LeaseInterval: 2 * time.Second}, "LeaseInterval", "makes slots of 2s: they are too short for this store, by which the time is known to ±1s: must be longer than 2 × that and Margin (2.022s)", 0},
		"slots of 3 s":        {8 * time.Second, Options{LeaseInterval: 3 * time.Second}, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.o.WorkerType = "job"
				client := NewClient(paced{memory.New(memory.Options{}), c.floor}, ClientOptions{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var w *WorkerLease
				var err error
				if c.o.Job != nil {
					w, err = client.StartTask(ctx, c.o, task)
				} else {
					w, err = client.StartLeasing(ctx, c.o, nothing)
				}
				if c.field == "" {
					if err != nil {
						t.Fatalf("start = %v, want a worker", err)
					}
					if got := w.machine.Failover; got != c.want {
						t.Errorf("FailoverWithin in force = %v, want %v", got, c.want)
					}
					cancel()
					<-w.Done()
					return
				}
				problems := OptionErrors(err)
				if len(problems) != 1 || problems[0].Field != c.field || !errors.Is(err, ErrOptions) {
					t.Fatalf("start = %v, want one problem, with %s", err, c.field)
				}
				if got := problems[0].Error(); got != c.says && got != c.field+": "+c.says {
					t.Errorf("start = %q, want %q", got, c.says)
				}
			})
		})
	}
}
