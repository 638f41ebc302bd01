package machine_test

import (
	"testing"

	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// BenchmarkWake is a wake-up in each of the matrix's situations and the look at
// what to wait for next: what a simulation does most.
func BenchmarkWake(b *testing.B) {
	type input struct {
		m  machine.Machine
		s  machine.State
		at machine.Moment
	}
	var all []input
	for _, s := range situations(b) {
		all = append(all, input{s.w.m, s.w.s, s.w.moment()})
	}
	b.Run("step", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			in := &all[i%len(all)]
			in.m.Step(in.s, in.at, machine.Wake{})
		}
	})
	b.Run("waits", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			in := &all[i%len(all)]
			in.m.Waits(&in.s)
		}
	})
}
