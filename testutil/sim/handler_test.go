package sim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// recorder is a test whose failures are recorded.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Helper()                        {}
func (r *recorder) Errorf(f string, a ...any)      { r.text += fmt.Sprintf(f, a...) + "\n" }
func (r *recorder) Logf(format string, arg ...any) { r.Errorf(format, arg...) }

// A simulation is useful only if it finds and reports what is wrong with the code under
// test.
func TestCodeThatIsWrongIsTold(t *testing.T) {
	type allocated func(p *sim.Process, ctx context.Context, l workerlease.Lease)
	tests := map[string]struct {
		allocated allocated
		expired   func()
		faults    sim.Faults
		want      string // "" if all is well
	}{
		"it is right": {
			allocated: func(p *sim.Process, ctx context.Context, l workerlease.Lease) {
				for (exporter{process: p}).wait(ctx, time.Second) && l.Valid() {
					p.Work(l)
				}
			},
			faults: sim.Faults{Stalls: 5 * time.Minute, Restarts: 10 * time.Minute},
		},
		"it works on when its context has ended": {
			allocated: func(p *sim.Process, _ context.Context, l workerlease.Lease) {
				for range 90 {
					p.Clock().Sleep(time.Second)
					p.Work(l)
				}
			},
			want: "after the last safe moment of its window: did it go on when its context had ended",
		},
		"it works after a pause without asking": {
			allocated: func(p *sim.Process, ctx context.Context, l workerlease.Lease) {
				for (exporter{process: p}).wait(ctx, time.Second) {
					p.Clock().Sleep(10 * time.Millisecond)
					p.Work(l)
				}
			},
			faults: sim.Faults{Stalls: time.Minute},
			want:   "or not ask Lease.Valid?",
		},
		"it panics": {
			allocated: func(*sim.Process, context.Context, workerlease.Lease) {
				panic("no more paper")
			},
			want: "LeaseAllocated for token 946684860000 panicked: no more paper",
		},
		"its end panics": {
			allocated: func(p *sim.Process, ctx context.Context, l workerlease.Lease) { p.Work(l); <-ctx.Done() },
			expired:   func() { panic("no") },
			want:      "LeaseExpired for token 946684860000 panicked: no",
		},
		"nobody checks it": {
			allocated: func(_ *sim.Process, ctx context.Context, _ workerlease.Lease) { <-ctx.Done() },
			want:      "never called Process.Work",
		},
		"nothing happens": {
			allocated: func(p *sim.Process, ctx context.Context, l workerlease.Lease) { p.Work(l); <-ctx.Done() },
			faults:    sim.Faults{Failed: 1},
			want:      "no worker ever got a lease in 1h0m0s",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sim.Run(t, sim.Options{
				Seed: 1, Faults: test.faults, Trace: true,
				Callbacks: func(p *sim.Process) workerlease.Callbacks {
					return workerlease.Callbacks{
						LeaseAllocated: func(ctx context.Context, l workerlease.Lease) { test.allocated(p, ctx, l) },
						LeaseExpired: func(workerlease.Lease, workerlease.Reason) {
							if test.expired != nil {
								test.expired()
							}
						},
					}
				},
			})
			told := &recorder{TB: t}
			r.Check(told)
			if test.want == "" && told.text != "" || !strings.Contains(told.text, test.want) {
				t.Errorf("told:\n%s\nwant %q in it", told.text, test.want)
			}
			if len(r.Violations) > 0 && !strings.Contains(r.Trace, "VIOLATION") {
				t.Error("the trace doesn't show the violation")
			}
			if test.faults.Stalls > 0 && !strings.Contains(r.Trace, "host: suspend until") {
				t.Error("the trace doesn't show a suspend")
			}
		})
	}
}

// hasty reads several times where once is enough.
type hasty struct {
	store.Ledger
	times int
}

func (h hasty) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	for range h.times - 1 {
		_, _, _ = h.Ledger.Tail(ctx, workerType, limit)
	}
	return h.Ledger.Tail(ctx, workerType, limit)
}

func TestAWorkerThatReadsMoreThanTwiceASecondIsNoticed(t *testing.T) {
	for times, want := range map[int]bool{1: false, 200: true} {
		r := sim.Run(t, sim.Options{
			Seed: 1, Faults: sim.Faults{Latency: 10 * time.Millisecond, Outages: 10 * time.Minute},
			Client: func(l store.Ledger, o workerlease.ClientOptions) *workerlease.Client {
				return workerlease.NewClient(hasty{l, times}, o)
			},
		})
		if got := strings.Contains(strings.Join(r.Violations, "\n"), "reads more than 120 times in 1m0s"); got != want {
			t.Errorf("%d reads in place of one: noticed is %v, want %v: %v", times, got, want, r.Violations)
		}
	}
}

// A user's wrapper of a ledger may fail, here for half of each ten minutes, unknown to the world.
// That keeps a worker from claiming, and is no fault of the engine.
func TestNothingIsDemandedOfAProcessWhoseCallsFail(t *testing.T) {
	failing := 0
	unsteady := func(c faultstore.Call) (f faultstore.Fault) {
		if (c.Op == faultstore.OpAppend || c.Op == faultstore.OpTail) && time.Now().Minute()%10 < 5 {
			f = faultstore.Failure()
		}
		return f
	}
	for seed := range fewer(4) {
		o := quiet(seed, time.Minute)
		o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
			return workerlease.NewClient(faultstore.New(l, faultstore.Options{Plan: unsteady}), c)
		}
		r := sim.Run(t, o)
		r.Check(t)
		failing += r.Missed
		if d := r.Demands; d.Boundaries < 50 || d.Turns < 50 {
			t.Errorf("seed %d: while nothing failed, too little was looked at:\n%v", seed, d)
		}
	}
	if failing == 0 {
		t.Error("no slot was missed: nothing failed")
	}
}
