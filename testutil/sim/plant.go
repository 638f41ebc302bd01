package sim

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
)

// plants reports whether the world plants records.
func (w *world) plants() bool {
	f := w.o.Faults
	return f.Poisons > 0 || f.NewerVersions > 0 || f.HugeSeqs > 0
}

// plant puts records into the ledger that no worker of this version wrote.
func (w *world) plant() {
	p := &Process{world: w, lanes: 1023 * lanes}
	f := w.o.Faults
	r := newRand(w.o.Seed, forPlant, 0, 0)
	type sort struct {
		every time.Duration
		kind  Fault
		next  time.Duration
	}
	sorts := []*sort{{f.Poisons, Poison, 0}, {f.NewerVersions, NewerVersion, 0}, {f.HugeSeqs, HugeSeq, 0}}
	for _, s := range sorts {
		s.next = r.upTo(2*s.every + 1)
	}
	for {
		var first *sort
		for _, s := range sorts {
			if s.every > 0 && (first == nil || s.next < first.next) {
				first = s
			}
		}
		if first.next >= w.o.Length {
			return
		}
		at := w.now()
		time.Sleep(p.slot(max(first.next, at)+1, lifeLane) - at)
		first.next += r.span(first.every/4, 2*first.every)
		w.plantOne(first.kind, &r)
	}
}

func (w *world) plantOne(kind Fault, r *rand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.ledger(w.hosts[0].options.WorkerType)
	head := l.head()
	now := w.origin.Add(w.now()).Truncate(time.Millisecond)
	x := store.Record{
		WorkerType: w.hosts[0].options.WorkerType, Seq: head.Seq + 1, Kind: store.KindGrant,
		Claim: fmt.Sprintf("planted-%x", r.next()), InstanceID: "planted", Token: max(now.UnixMilli(), head.Token+1),
		WindowStart: now, WindowEnd: now.Add(time.Minute),
	}
	hole := false
	switch kind {
	case NewerVersion:
		if head.Seq == 0 || head.CheckEnvelope() != nil || w.planted[head.Claim] {
			return
		}
		x = head
		x.Seq++
		x.Kind, x.Metadata, x.ReadAt = "note", "from a later version", time.Time{}
		x.WindowStart = x.WindowEnd
	case HugeSeq:
		x.Seq = store.MaxSeq + 1 + int64(r.next()>>24)
	default:
		switch r.below(4) {
		case 0:
			x.WindowStart = now.AddDate(99, 0, 0)
			x.WindowEnd = x.WindowStart.Add(time.Minute)
		case 1:
			x.Defect = "not a record"
		case 2:
			x.Token = now.AddDate(1, 0, 0).UnixMilli()
		case 3:
			x.WindowEnd = x.WindowStart.AddDate(2, 0, 0)
		}
		w.planted[x.Claim] = true
		above := newRand(w.o.Seed, forPlant, 1, head.Seq)
		if f := w.o.Faults.Holes; f > 0 && head.Seq > 0 && above.chance(f) {
			x.Seq++
			hole = true
		}
	}
	if l.insert(x) {
		w.tally.strike(kind)
		if hole {
			w.tally.strike(Hole)
		}
		w.plantings = append(w.plantings, Planted{w.now(), kind, x})
		if kind != HugeSeq {
			l.landedAt[x.Seq] = w.now()
			l.first[x.Seq] = x.Claim
		}
	}
}
