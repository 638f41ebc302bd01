package sim

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
)

// plants reports whether the world plants records.
func (w *world) plants() bool {
	f := w.o.Faults
	return f.Poisons > 0 || f.NewerVersions > 0 || f.HugeSeqs > 0 || f.Foreign > 0
}

// plant puts records into the ledger that no worker of this version wrote.
func (w *world) plant() {
	p := &Process{world: w, lanes: 1023 * lanes}
	f := w.o.Faults
	r := newRand(w.o.Seed, forPlant, 0, 0)
	type sort struct {
		every time.Duration
		kind  Fault
		r     *rand
		next  time.Duration
	}
	foreign := newRand(w.o.Seed, forPlant, 2, 0)
	sorts := []*sort{{f.Poisons, Poison, &r, 0}, {f.NewerVersions, NewerVersion, &r, 0}, {f.HugeSeqs, HugeSeq, &r, 0}, {f.Foreign, Foreign, &foreign, 0}}
	for _, s := range sorts {
		s.next = s.r.upTo(2*s.every + 1)
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
		first.next += first.r.span(first.every/4, 2*first.every)
		w.plantOne(first.kind, first.r)
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
	case Foreign:
		if head.Seq == 0 || head.CheckEnvelope() != nil || w.planted[head.Claim] {
			return
		}
		w.contradict(&x, head, r.below(5))
		w.planted[x.Claim] = true
		hole = x.Seq > head.Seq+1
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

// contradict makes a valid record one that no worker can have appended after the head.
func (w *world) contradict(x *store.Record, head store.Record, how int) {
	switch how {
	case 0: // It begins in the window below it, or has no token above that.
		if !x.WindowStart.Before(head.WindowEnd) {
			x.Token = head.Token
		}
	case 1:
		x.Token = max(1, head.Token-int64(how))
	case 2: // It ends a term that it isn't of.
		x.Kind, x.WindowEnd = "note", x.WindowStart
	case 3: // It supersedes what can be obeyed.
		x.Kind, x.WindowEnd, x.ReadAt = store.KindReset, x.WindowStart, x.WindowStart
		if x.Token%2 == 0 {
			x.ReadAt = x.ReadAt.AddDate(0, 0, -1) // It was copied from elsewhere.
		}
		if !x.WindowStart.Before(head.WindowEnd) {
			x.Token = head.Token
		}
	default: // It stands above a free key.
		x.Seq, x.Token = head.Seq+2, 1
	}
}
