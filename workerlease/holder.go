package workerlease

import (
	"time"

	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Holder is the worker that holds a lease or, if Group is set, its whole group. All times
// are store time.
type Holder struct {
	InstanceID string
	Group      string
	Priority   int
	// Token is the fencing token of the lease.
	Token int64
	// From and Until bound all windows that it has claimed so far.
	From, Until time.Time
	// Claimed is the earliest time at which it may have made its newest claim; zero if
	// that isn't known, as right after a done record.
	Claimed time.Time
}

func holder(h machine.Holder) Holder {
	return Holder{
		InstanceID: h.InstanceID, Group: h.Group, Priority: h.Priority, Token: h.Token,
		From: h.Start, Until: h.End, Claimed: h.Fixed,
	}
}

// Holder returns the current holder, by the best guess of store time, as far as this worker
// has seen. It asks nobody: a worker reads the ledger once for each slot, shortly before its
// boundary, and with FailoverWithin when a part of the slot ends. So a holder that has died
// or released since is still shown. The answer is for information only: Lease.Valid says
// what is safe.
func (w *WorkerLease) Holder() (Holder, bool) {
	now := w.now()
	if !now.Known() {
		return Holder{}, false
	}
	w.mu.Lock()
	h := w.holders.At(now.Mid())
	w.mu.Unlock()
	return holder(h), h.Claim != ""
}

// IsHolder reports that this worker has a lease that is valid now. Without
// Options.Continuous no worker has one for a moment around each boundary.
func (w *WorkerLease) IsHolder() bool {
	h := w.active.Load()
	return h != nil && h.valid()
}
