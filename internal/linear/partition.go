package linear

import (
	"cmp"
	"maps"
	"slices"
)

// partition is a part of a history that can be checked on its own.
type partition struct {
	workerType string
	// seq is the only key of the part, or 0 for all keys of the worker type.
	seq int64
	ops []*operation
}

// partitions splits a history by worker type, and the types that were never tailed or
// trimmed by key.
func partitions(ops []*operation) []partition {
	types := map[string][]*operation{}
	for _, o := range ops {
		types[o.WorkerType] = append(types[o.WorkerType], o)
	}
	var parts []partition
	for _, t := range slices.Sorted(maps.Keys(types)) {
		p := partition{workerType: t, ops: types[t]}
		if slices.ContainsFunc(p.ops, func(o *operation) bool { return o.Act == actTrim || o.Act == actTail }) {
			parts = append(parts, p)
			continue
		}
		keys := map[int64][]*operation{}
		for _, o := range p.ops {
			keys[o.Seq] = append(keys[o.Seq], o)
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			parts = append(parts, partition{workerType: t, seq: k, ops: keys[k]})
		}
	}
	return parts
}

// until is the part as it was at a time: what began later is not there, and what
// hadn't ended has an unknown outcome.
func (p partition) until(t int64) partition {
	ops := p.ops
	p.ops = nil
	for _, o := range ops {
		if o.call.At > t {
			continue
		}
		if o.reply.At > t {
			o = &operation{call: o.call, reply: reply{At: never}}
		}
		if !o.silent() {
			p.ops = append(p.ops, o)
		}
	}
	return p
}

// ends are the times at which operations ended, in order.
func (p partition) ends() []int64 {
	var out []int64
	for _, o := range p.ops {
		if o.reply.At != never {
			out = append(out, o.reply.At)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// copied returns copies of the operations, in which each tail knows the trims that went on meanwhile: records that
// these delete may be missing in it at any time.
func (p partition) copied() []*operation {
	var trims []*operation
	for _, o := range p.ops {
		if o.Act == actTrim && (o.ghost() || o.Removed > 0) {
			trims = append(trims, o)
		}
	}
	out := make([]*operation, len(p.ops))
	for i, o := range p.ops {
		n := *o
		out[i] = &n
		if o.Act != actTail {
			continue
		}
		for _, t := range trims {
			if t.call.At <= o.reply.At && (t.ghost() || o.call.At <= t.reply.At) {
				n.trimmed = max(n.trimmed, t.Seq)
			}
		}
	}
	return out
}

// narrowed copies the operations and narrows the time in which those of unknown outcome
// took effect. A trim may take effect from its start on, and at any time after. An append
// whose record was read took effect before the first read of it ended, and after every
// operation that missed the record before the last read of it, because deleted records
// don't return. unread are the appends whose record was never read.
//
// A guess goes further: an append whose record was read took effect only when a client
// first saw it, by a read or a conflict.
func (p partition) narrowed(guess bool) (ops, unread []*operation) {
	type reads struct{ firstStart, firstEnd, lastStart int64 }
	read := map[identity]reads{}
	writers := map[identity]int{}
	conflicts := map[int64][]*operation{}
	for _, o := range p.ops {
		for _, f := range o.Found {
			r, ok := read[f]
			if !ok {
				r = reads{o.call.At, o.reply.At, o.call.At}
			}
			read[f] = reads{min(r.firstStart, o.call.At), min(r.firstEnd, o.reply.At), max(r.lastStart, o.call.At)}
		}
		if o.Act == actAppend {
			writers[o.Record]++
			if o.Outcome == conflict {
				conflicts[o.Seq] = append(conflicts[o.Seq], o)
			}
		}
	}
	copies := p.copied()
	for i, o := range p.ops {
		n := copies[i]
		ops = append(ops, n)
		r, found := read[o.Record]
		switch {
		case !o.ghost():
		case o.Act == actTrim:
			n.reply.At = o.call.At
		case !found:
			ops = ops[:len(ops)-1]
			unread = append(unread, n)
		case writers[o.Record] == 1 && r.firstEnd >= o.call.At:
			n.seen, n.reply.At = true, r.firstEnd
			for j, m := range p.ops { // The times of a copy may be narrowed already.
				if m.reply.At < r.lastStart && m.call.At > n.call.At && copies[j].misses(o.Record) {
					n.call.At = min(m.call.At, n.reply.At)
				}
			}
			if !guess {
				break
			}
			met := r.firstStart
			for _, c := range conflicts[o.Seq] {
				if c.reply.At >= n.call.At {
					met = min(met, c.call.At)
				}
			}
			n.call.At = max(n.call.At, min(met, n.reply.At))
		}
	}
	return ops, unread
}

// sheltering are those of the unread appends that may have let a trim delete more
// than it could without them, because they were the head.
func (p partition) sheltering(unread []*operation) []*operation {
	// highest is the largest Seq that was surely stored at a time: no head is ever
	// deleted, so the head is not below it from then on.
	type known struct{ at, seq int64 }
	var highest []known
	for _, o := range p.ops {
		switch {
		case o.Act == actAppend && o.Outcome == done:
			highest = append(highest, known{o.reply.At, o.Seq})
		case len(o.Found) > 0:
			highest = append(highest, known{o.reply.At, o.Found[0].Seq})
		}
	}
	slices.SortFunc(highest, func(a, b known) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(highest); i++ {
		highest[i].seq = max(highest[i].seq, highest[i-1].seq)
	}
	head := func(at int64) int64 {
		i, _ := slices.BinarySearchFunc(highest, at, func(k known, at int64) int { return cmp.Compare(k.at, at) })
		if i == 0 {
			return 0
		}
		return highest[i-1].seq
	}
	var trims []*operation
	for _, o := range p.ops {
		if o.Act == actTrim && (o.ghost() || o.Removed > 0) {
			trims = append(trims, o)
		}
	}
	var out []*operation
	for _, u := range unread {
		if slices.ContainsFunc(trims, func(t *operation) bool {
			h := head(max(t.call.At, u.call.At))
			return t.Seq > h && u.Seq > h && u.call.At <= t.reply.At
		}) && p.mayHaveLed(u) {
			out = append(out, u)
		}
	}
	return out
}

// mayHaveLed reports whether an unread append may ever have been the head. It
// can't if another record got its key before any client used a higher one: before, it
// would have been in the way; after, there was a higher one when the key was free
// again.
func (p partition) mayHaveLed(u *operation) bool {
	taken, higher := int64(never), int64(never)
	for _, o := range p.ops {
		switch {
		case o.Act == actAppend && o.Seq > u.Seq:
			higher = min(higher, o.call.At)
		case o.Act == actAppend && o.Seq == u.Seq && o.Outcome == done,
			slices.ContainsFunc(o.Found, func(f identity) bool { return f.Seq == u.Seq }):
			taken = min(taken, o.reply.At)
		}
	}
	return taken == never || higher <= taken
}

// byStart orders operations by their beginnings.
func byStart(a, b *operation) int { return cmp.Compare(a.call.At, b.call.At) }
