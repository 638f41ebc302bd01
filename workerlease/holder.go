package workerlease

import (
	"time"

	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Holder is who holds the lease of a worker type: a worker or, if Group is set,
// all of that group. All times are store time.
type Holder struct {
	InstanceID string
	Group      string
	Priority   int
	// Token is the fencing token of the lease.
	Token int64
	// From and Until bound what it has claimed so far.
	From, Until time.Time
	// Claimed is when it made its newest claim, at the earliest; zero if that isn't known,
	// as right behind a done record.
	Claimed time.Time
}

func holder(h machine.Holder) Holder {
	return Holder{
		InstanceID: h.InstanceID, Group: h.Group, Priority: h.Priority, Token: h.Token,
		From: h.Start, Until: h.End, Claimed: h.Fixed,
	}
}

// Holder tells who holds the lease now, by the best guess of store time and as far
// as this worker has seen. It asks nobody: workers look at the ledger once for each
// slot, shortly before its boundary, and with FailoverWithin whenever a part of the
// slot has ended; a holder that died or released in between is not missed until then, nor
// one whose code for an earlier slot keeps it from working. The answer is for
// information: what is safe to do, Lease.Valid tells.
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

// IsHolder reports whether this worker may work now: whether it has a lease, and
// Lease.Valid says so. Without Options.Continuous nobody does for a moment around each
// boundary.
func (w *WorkerLease) IsHolder() bool {
	h := w.active.Load()
	return h != nil && h.valid()
}
