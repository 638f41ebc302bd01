package workerlease_test

import (
	"time"

	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// loopVariants don't look again at the time when they should.
var loopVariants = []variant{
	// w0 has won the rest of a slot. An observer keeps it for some seconds between that
	// and LeaseAllocated, and w1's slot has begun by then.
	{name: "it was time a moment ago", rule: "Looks: AtStart", regime: busy, broken: func(r *machine.Rules) { r.Looks &^= machine.AtStart }},
	// w0's machine is suspended for longer than its lease lasts. When it wakes, the
	// timer goes on from where it was, and the code's context doesn't end.
	{name: "a timer comes in time", rule: "Looks: AtTimer", regime: standstills, broken: func(r *machine.Rules) { r.Looks &^= machine.AtTimer }},
	// w0 stands still until w1 works, goes on, asks whether it may work, and hears that
	// no timer has said otherwise.
	{name: "a lease is valid until a timer ends it", rule: "Looks: AtQuestion", regime: standstills,
		broken: func(r *machine.Rules) { r.Looks &^= machine.AtQuestion }},
}

var (
	// standstills: processes stand still, or their machines are suspended.
	standstills = varied(func(f *sim.Faults) { f.Stalls, f.NoBoottime = 5*time.Minute, false }, every(time.Minute))
	// busy: the worker's goroutine is often kept for some seconds.
	busy = varied(func(f *sim.Faults) { f.SlowObserver = 0.2 }, func(_ int, w *workerlease.Options) {
		w.LeaseInterval, w.JoinMidSlot = 10*time.Second, true
	})
)
