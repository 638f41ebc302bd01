package verify

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
)

// keys is what is known of missing keys.
type keys struct {
	first int64     // the oldest record that was not left by a trim
	kept  int       // how many records workers follow from there on
	read  time.Time // when the head was read for the oldest of them that says so
	// left are the records below first, which a trim has left, or which landed there since, and
	// early is what else was found wrong down there.
	left  int
	early found
	// moved says that the worker type came from another store, whose records below first weren't copied.
	moved bool
}

// take counts a record that workers follow.
func (k *keys) take(r store.Record) {
	if k.first == 0 {
		k.first = r.Seq
	}
	if k.kept++; k.read.IsZero() && r.CheckEnvelope() == nil {
		k.read = r.ReadAt
	}
}

// climb takes a record above a free key. Workers follow such records only if two of them that are
// adjacent can be obeyed: then a worker has appended there, and what is below is missing.
func (v *Verifier) climb(r store.Record) {
	above := append(v.above, r)
	n := len(above)
	followed := n > 1 && ledger.Standard.Leads(above[n-2], r) && ledger.Obeyable(r) && ledger.Obeyable(above[n-2])
	v.above = above
	if n < most && !followed {
		return
	}
	v.above = nil
	for _, x := range above {
		if lower := v.newest[0]; x.Seq != lower.Seq+1 {
			v.gap(lower, x)
		}
		v.take(x)
	}
}

// gap notes missing keys. A trim deletes a batch in any order, so one that was cut short leaves gaps
// among the oldest records. And an append that was under way for long may land on a key that was
// trimmed: its claim is void by then. So what is below such a gap says nothing of what is above.
func (v *Verifier) gap(lower, upper store.Record) {
	if orders, _ := store.ParseOrders(lower.Orders); slices.ContainsFunc(orders, arrives) {
		v.apart()
		v.keys.moved = true
		return
	}
	v.find(GapInKeys, upper, "Records are missing between %d and %d.", lower.Seq, upper.Seq)
	if k := &v.keys; k.left+k.kept <= store.TrimBatch && v.mayBeTrimmed(upper) {
		v.apart()
	}
}

// arrives reports that an order is the pause which a move between stores puts below what it copies.
func arrives(o store.Order) bool {
	role, _ := o.Move()
	return role == store.MoveArriving
}

// isSeam reports that a record was copied by a move right above the pause which that has put on what this store had: the worker type
// was here before. So it follows none of those below.
func (v *Verifier) isSeam(r store.Record) bool {
	if len(v.newest) == 0 {
		return false
	}
	lower := v.newest[0]
	orders, _ := store.ParseOrders(lower.Orders)
	return lower.Kind == store.KindOrder && slices.ContainsFunc(orders, arrives) && r.Kind != store.KindOverride &&
		(r.Claim != lower.Claim || r.FixedAt.Before(lower.FixedAt))
}

// mostLate is how many records in a row are taken for appends that landed on trimmed keys.
const mostLate = 4

// besideLate reports that a record contradicts the oldest ones, and that these may have landed late, right
// below it, on keys that were trimmed. The newest of all is that record.
func (v *Verifier) besideLate(r store.Record) bool {
	k := &v.keys
	late := k.kept - 1
	if late < 1 || late > mostLate || k.first <= 1 && k.left == 0 || k.left+late > store.TrimBatch || !v.mayBeTrimmed(r) {
		return false
	}
	if ledger.At(v.latest).Defect(v.newest[:1]) != nil {
		return false // It is wrong in itself.
	}
	k.kept--
	return true
}

// apart forgets what is below, but for what was found there: it says nothing of what comes next.
func (v *Verifier) apart() {
	k := &v.keys
	v.goneBy()
	k.early.merge(v.found)
	v.found = found{}
	k.first, k.left, k.kept, k.read = 0, k.left+k.kept, 0, time.Time{}
	v.forget()
	v.report.Terms, v.report.Grants, v.report.Missed, v.report.Skipped, v.report.MissedMore = 0, 0, 0, 0, false
}

// belowTrimmed are the faults of records among which some may have been trimmed. Those that are missing are
// none, and so may what landed late look like others.
func (f found) belowTrimmed() found {
	doubtful := found{}
	for k, all := range f.clone() {
		if k.severity != Fault || k.code == GapInKeys {
			continue
		}
		for _, of := range [][]Finding{all.first, all.newest} {
			for i := range of {
				of[i].Severity = Warning
				of[i].Text += " Records near it may have been trimmed, and it may have landed late: then this is no fault."
			}
		}
		doubtful[kind{k.code, Warning}] = all
	}
	return doubtful
}

// mayBeTrimmed reports that a record is old enough for those below it to be trimmed.
func (v *Verifier) mayBeTrimmed(r store.Record) bool {
	return !r.ReadAt.IsZero() && !r.ReadAt.Add(v.o.Retention).After(v.latest)
}

// left adds what is above a free key still.
func (v *Verifier) left() {
	for _, r := range v.above {
		v.find(AboveFreeKey, r, "The record is above a free key, %d, so that no worker follows it.", v.newest[0].Seq+1)
	}
}

// judge adds what the keys show at the end.
func (k *keys) judge(v *Verifier) {
	first := store.Record{Seq: k.first}
	if k.left > 0 && k.kept < ledger.Keep {
		v.found.merge(k.early)
	} else if k.left > 0 {
		v.found.merge(k.early.belowTrimmed())
		v.find(TrimUnfinished, first, "Below record %d there are %d more, which a trim or a move has left, or which landed there late.", first.Seq, k.left)
	}
	if first.Seq <= 1 || k.moved {
		return
	}
	if k.kept < ledger.Keep {
		v.find(KeptTooFew, first, "Records below %d were removed, and %d are left: workers keep at least %d.", first.Seq, k.kept, ledger.Keep)
	}
	if !k.read.IsZero() && k.read.Add(v.o.Retention).After(v.latest) {
		v.find(TrimmedTooYoung, first, "Records below %d were removed, and the oldest that is left is of %s: workers keep them for at least %v.",
			first.Seq, store.Format(k.read), v.o.Retention)
	}
}
