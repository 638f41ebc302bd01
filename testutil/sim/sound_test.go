package sim_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// unsound are the faults that package verify finds in the ledgers of a run. Workers write none, whatever
// happens; and what the world planted is one only until workers have superseded it.
func unsound(o sim.Options, r *sim.Result) (wrong []string) {
	planted := map[int64]sim.Planted{}
	for _, p := range r.Planted {
		planted[p.Record.Seq] = p
	}
	begin := o.Begin
	if begin.IsZero() {
		begin = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	for workerType, records := range r.Records {
		// The store's clock, which verify goes by, may be ahead at the end of the run.
		now := begin.Add(o.Length)
		for _, x := range records {
			if p, is := planted[x.Seq]; o.Faults.WrongClocks > 0 && x.ReadAt.After(now) && (!is || x.Claim != p.Record.Claim) {
				now = x.ReadAt
			}
		}
		v := verify.New(verify.Options{WorkerType: workerType, Now: now, Uncertainty: time.Minute})
		for _, x := range records {
			if x.Seq > store.MaxSeq {
				continue
			}
			v.Add(x)
		}
		for _, f := range v.Report().Findings {
			p, is := planted[f.Seq]
			own := is && slices.ContainsFunc(records, func(x store.Record) bool { return x.Seq == f.Seq && x.Claim == p.Record.Claim })
			// While the store's clock was wrong, a worker may have reset the ledger by it. That is one until it
			// is superseded, too.
			newest := records[len(records)-1]
			reset := o.Faults.WrongClocks > 0 && newest.Kind == store.KindReset && f.Seq == newest.Seq
			// What nothing has superseded yet is a fault.
			if f.Severity == verify.Fault && !own && !reset {
				wrong = append(wrong, fmt.Sprintf("verify %s: record %d: %s: %s", workerType, f.Seq, f.Code, f.Text))
			}
		}
	}
	return wrong
}
