package linear

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// at sets the interval of an operation.
func (o operation) at(start, end int64) operation {
	o.call.WorkerType, o.call.At, o.reply.At = "job", start, end
	return o
}

func id(seq int64, claim string) identity { return identity{Seq: seq, Claim: claim} }

func appends(seq int64, claim string, out outcome) operation {
	return operation{call: call{Act: actAppend, Seq: seq, Record: id(seq, claim)}, reply: reply{Outcome: out}}
}

func gets(seq int64, claim string) operation {
	if claim == "" {
		return operation{call: call{Act: actGet, Seq: seq}, reply: reply{Outcome: notFound}}
	}
	return operation{call: call{Act: actGet, Seq: seq}, reply: reply{Outcome: done, Found: []identity{id(seq, claim)}}}
}

func tails(limit int64, found ...identity) operation {
	return operation{call: call{Act: actTail, Seq: limit}, reply: reply{Outcome: done, Found: found}}
}

func trims(before int64, removed int) operation {
	return operation{call: call{Act: actTrim, Seq: before}, reply: reply{Outcome: done, Removed: removed}}
}

func trimsUnknown(before int64) operation {
	return operation{call: call{Act: actTrim, Seq: before}}
}

func TestCheckJudgesSmallHistories(t *testing.T) {
	const late = never
	for name, c := range map[string]struct {
		ops   []operation
		legal bool
	}{
		"nothing":                        {nil, true},
		"an empty ledger":                {[]operation{gets(1, "").at(1, 2), tails(3).at(3, 4), trims(9, 0).at(5, 6)}, true},
		"one winner":                     {[]operation{appends(1, "a", done).at(1, 4), appends(1, "b", conflict).at(2, 3), gets(1, "a").at(5, 6)}, true},
		"two winners":                    {[]operation{appends(1, "a", done).at(1, 4), appends(1, "b", done).at(2, 3)}, false},
		"a record out of nowhere":        {[]operation{gets(1, "a").at(1, 2)}, false},
		"a record before it is appended": {[]operation{gets(1, "a").at(1, 2), appends(1, "a", done).at(3, 4)}, false},
		"a read during the append":       {[]operation{appends(1, "a", done).at(1, 9), gets(1, "").at(2, 3), gets(1, "a").at(4, 5)}, true},
		"a read that goes back":          {[]operation{appends(1, "a", done).at(1, 9), gets(1, "a").at(2, 3), gets(1, "").at(4, 5)}, false},
		"intervals that touch overlap":   {[]operation{appends(1, "a", done).at(1, 2), gets(1, "").at(2, 3)}, true},
		"an acknowledged record is lost": {[]operation{appends(1, "a", done).at(1, 2), gets(1, "").at(3, 4)}, false},
		"lost to a tail":                 {[]operation{appends(1, "a", done).at(1, 2), tails(3).at(3, 4)}, false},

		"a conflict with oneself":             {[]operation{appends(1, "a", conflict).at(1, 2), gets(1, "a").at(3, 4)}, true},
		"a conflict with nobody":              {[]operation{appends(1, "a", conflict).at(1, 2), gets(1, "").at(3, 4)}, false},
		"a conflict with what isn't there":    {[]operation{appends(1, "a", conflict).at(1, 2), appends(1, "b", done).at(3, 4)}, false},
		"a conflict with what comes meantime": {[]operation{appends(1, "a", conflict).at(1, 4), appends(1, "b", done).at(2, 5), gets(1, "b").at(6, 7)}, true},

		"a conflict that overwrote":            {[]operation{appends(1, "a", done).at(1, 2), appends(1, "b", conflict).at(3, 4), gets(1, "b").at(5, 6)}, false},
		"an acknowledged record that vanishes": {[]operation{appends(1, "a", done).at(1, 2), gets(1, "a").at(3, 4), gets(1, "").at(5, 6)}, false},
		"a get of another's record":            {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), gets(2, "a").at(5, 6)}, false},

		"an unknown append that never landed": {[]operation{appends(1, "a", unknown).at(1, late), gets(1, "").at(3, 4)}, true},
		"one that landed":                     {[]operation{appends(1, "a", unknown).at(1, late), gets(1, "a").at(3, 4)}, true},
		"one that landed late":                {[]operation{appends(1, "a", unknown).at(1, late), gets(1, "").at(3, 4), gets(1, "a").at(5, 6)}, true},
		"one that landed and vanished":        {[]operation{appends(1, "a", unknown).at(1, late), gets(1, "a").at(3, 4), gets(1, "").at(5, 6)}, false},
		"one that landed before it was sent":  {[]operation{gets(1, "a").at(1, 2), appends(1, "a", unknown).at(3, late)}, false},
		"one that overwrote another":          {[]operation{appends(1, "b", done).at(1, 2), appends(1, "a", unknown).at(3, late), gets(1, "a").at(5, 6)}, false},
		"one that gave way":                   {[]operation{appends(1, "a", unknown).at(1, late), appends(1, "b", done).at(3, 4), gets(1, "b").at(5, 6)}, true},
		"one that only a conflict shows":      {[]operation{appends(1, "a", unknown).at(1, late), tails(3).at(2, 3), appends(1, "b", conflict).at(4, 5)}, true},
		"one on a trimmed key":                {[]operation{appends(1, "a", unknown).at(1, late), appends(1, "b", done).at(2, 3), appends(2, "c", done).at(4, 5), trims(2, 1).at(6, 7), gets(1, "a").at(8, 9)}, true},
		"one that was deleted unread":         {[]operation{appends(1, "a", unknown).at(1, late), appends(2, "b", done).at(2, 3), trims(2, 1).at(4, 5)}, true},
		"one that was the head unread":        {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", unknown).at(3, late), trims(9, 1).at(4, 5), gets(1, "").at(6, 7)}, true},
		"one of two tries of the same record": {[]operation{appends(1, "a", unknown).at(1, late), appends(1, "a", unknown).at(2, late), gets(1, "a").at(3, 4)}, true},

		"a tail in order":          {[]operation{appends(1, "a", done).at(1, 2), appends(3, "c", done).at(3, 4), tails(2, id(3, "c"), id(1, "a")).at(5, 6)}, true},
		"a tail out of order":      {[]operation{appends(1, "a", done).at(1, 2), appends(3, "c", done).at(3, 4), tails(2, id(1, "a"), id(3, "c")).at(5, 6)}, false},
		"a tail with a hole":       {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), appends(3, "c", done).at(5, 6), tails(2, id(3, "c"), id(1, "a")).at(7, 8)}, false},
		"a tail that is too short": {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), tails(2, id(2, "b")).at(5, 6)}, false},
		"a tail that is too long":  {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), tails(1, id(2, "b"), id(1, "a")).at(5, 6)}, false},
		"a tail of an older time":  {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), tails(1, id(1, "a")).at(5, 6)}, false},
		"a tail of another record": {[]operation{appends(1, "a", done).at(1, 2), tails(1, id(1, "b")).at(3, 4)}, false},
		"a tail of nothing":        {[]operation{appends(1, "a", done).at(1, 2), tails(0).at(3, 4)}, true},

		"a trim":                        {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trims(2, 1).at(5, 6), gets(1, "").at(7, 8), tails(5, id(2, "b")).at(9, 10)}, true},
		"a trim that leaves some":       {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), appends(3, "c", done).at(5, 6), trims(3, 1).at(7, 8), tails(5, id(3, "c"), id(2, "b")).at(9, 10)}, true},
		"a trim of the head":            {[]operation{appends(1, "a", done).at(1, 2), trims(9, 1).at(3, 4), gets(1, "").at(5, 6)}, false},
		"a trim beyond its bound":       {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trims(1, 1).at(5, 6), gets(1, "").at(7, 8)}, false},
		"a trimmed record that returns": {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trims(2, 1).at(5, 6), gets(1, "").at(7, 8), gets(1, "a").at(9, 10)}, false},
		"a trim that goes on later":     {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trims(2, 1).at(5, 6), gets(1, "a").at(7, 8), gets(1, "").at(9, 10)}, false},
		// The unknown append was the head that let the first trim delete the record below.
		"a tail that lacks an unknown append which a trim deletes meanwhile": {[]operation{
			appends(1, "x", done).at(1, 2), appends(2, "a", unknown).at(3, late), trims(9, 1).at(4, 5), gets(1, "").at(6, 7), appends(5, "h", done).at(6, 7),
			trims(3, 1).at(8, 14), tails(2, id(5, "h")).at(9, 10), gets(2, "a").at(11, 12), gets(2, "").at(15, 16),
		}, true},
		"a tail that lacks it before that trim begins": {[]operation{
			appends(1, "x", done).at(1, 2), appends(2, "a", unknown).at(3, late), trims(9, 1).at(4, 5), gets(1, "").at(6, 7), appends(5, "h", done).at(6, 7),
			tails(2, id(5, "h")).at(8, 9), trims(3, 1).at(10, 14), gets(2, "a").at(11, 12), gets(2, "").at(15, 16),
		}, false},
		"a trim that goes on while others read": {[]operation{
			appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), appends(3, "c", done).at(5, 6), trims(3, 2).at(7, 14),
			gets(1, "").at(8, 9), appends(2, "x", conflict).at(10, 11), gets(2, "").at(12, 13), gets(2, "").at(15, 16),
		}, true},
		"a trim that deletes what it has deleted": {[]operation{
			appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trims(2, 1).at(5, 12), gets(1, "").at(6, 7), gets(1, "a").at(8, 9),
		}, false},
		"a tail without what a trim deletes": {[]operation{
			appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), tails(5, id(2, "b")).at(5, 14), appends(3, "c", done).at(6, 7), gets(1, "a").at(8, 9),
			trims(2, 1).at(10, 11), gets(1, "").at(12, 13),
		}, true},
		"a tail without what an unknown trim deletes": {[]operation{
			appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trimsUnknown(2).at(5, late), tails(5, id(2, "b")).at(6, 14), appends(3, "c", done).at(7, 8),
			gets(1, "a").at(9, 10), gets(1, "").at(12, 13),
		}, true},
		"a tail without what a trim deletes later": {[]operation{
			appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), tails(5, id(2, "b")).at(5, 9), appends(3, "c", done).at(6, 7), gets(1, "a").at(8, 10),
			trims(2, 1).at(11, 12),
		}, false},
		"two trims, of which one has ended": {[]operation{
			appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), appends(3, "c", done).at(5, 6), trims(3, 1).at(7, 10), trims(2, 1).at(8, 17),
			gets(2, "b").at(11, 12), gets(2, "").at(13, 14),
		}, false},
		"two trims, of which the other has ended": {[]operation{
			appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), appends(3, "c", done).at(5, 6), trims(2, 1).at(7, 10), trims(3, 1).at(8, 17),
			gets(2, "b").at(11, 12), gets(2, "").at(13, 14),
		}, true},
		"an unknown trim, twice":               {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trimsUnknown(2).at(5, late), gets(1, "").at(7, 8), gets(1, "a").at(9, 10)}, false},
		"a conflict at a key that may be gone": {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trims(2, 1).at(5, 6), appends(1, "c", conflict).at(7, 8), gets(1, "c").at(9, 10), gets(1, "c").at(11, 12)}, true},
		"and another one":                      {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trims(2, 1).at(5, 6), appends(1, "c", conflict).at(7, 8), gets(1, "a").at(9, 10), gets(1, "c").at(11, 12)}, false},
		"a trim that says nothing":             {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trims(2, 0).at(5, 6), gets(1, "").at(7, 8)}, false},
		"an unknown trim, done":                {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trimsUnknown(2).at(5, late), gets(1, "").at(7, 8)}, true},
		"an unknown trim, not done":            {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trimsUnknown(2).at(5, late), gets(1, "a").at(7, 8)}, true},
		"an unknown trim, half done":           {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), appends(3, "c", done).at(5, 6), trimsUnknown(3).at(7, late), tails(9, id(3, "c"), id(2, "b")).at(8, 9)}, true},
		"an unknown trim, done late":           {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trimsUnknown(2).at(5, late), gets(1, "a").at(7, 8), gets(1, "").at(9, 10)}, true},
		"an unknown trim of the head":          {[]operation{appends(1, "a", done).at(1, 2), trimsUnknown(9).at(3, late), gets(1, "").at(5, 6)}, false},
		"a key that was trimmed again":         {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", done).at(3, 4), trims(2, 1).at(5, 6), appends(1, "c", done).at(7, 8), gets(1, "c").at(9, 10)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := &History{ops: c.ops}
			result, err := h.Check(0)
			if c.legal && err != nil || !c.legal && !errors.Is(err, ErrIllegal) {
				t.Errorf("Check() = %v, want legal: %v", err, c.legal)
			}
			if result.Operations != len(c.ops) || (result.Illegal > 0) == c.legal {
				t.Errorf("Check() = %+v, want %d operations", result, len(c.ops))
			}
			if got := explained(c.ops); got != c.legal {
				t.Errorf("explained() = %v, want %v", got, c.legal)
			}
		})
	}
}

func TestAppendsThatAreLeftOutArentCountedAsSearched(t *testing.T) {
	for name, c := range map[string]struct {
		ops  []operation
		want int
	}{
		"read":                   {[]operation{appends(1, "a", unknown).at(1, never), gets(1, "a").at(3, 4)}, 2},
		"not read":               {[]operation{appends(1, "a", unknown).at(1, never), gets(1, "").at(3, 4)}, 1},
		"never asked for":        {[]operation{appends(1, "a", unknown).at(1, never)}, 0},
		"not read, but may lead": {[]operation{appends(1, "a", done).at(1, 2), appends(2, "b", unknown).at(3, never), trims(9, 1).at(5, 6), gets(1, "").at(7, 8)}, 4},
	} {
		result, err := (&History{ops: c.ops}).Check(0)
		if err != nil || result.Operations != len(c.ops) || result.Searched != c.want {
			t.Errorf("%s: Check() = %+v, %v, want %d of %d operations searched", name, result, err, c.want, len(c.ops))
		}
	}
}

// explained decides the same by trying all orders, with a specification of its
// own: what is left out, narrowed down or partitioned by Check isn't here.
func explained(ops []operation) bool {
	var all []operation
	for _, o := range ops {
		for _, t := range ops {
			if o.Act == actTail && t.Act == actTrim && (t.Outcome == unknown || t.Removed > 0) && t.call.At <= o.reply.At && o.call.At <= t.reply.At {
				o.trimmed = max(o.trimmed, t.Seq)
			}
		}
		if o.Act != actTrim || o.Removed == 0 {
			all = append(all, o)
			continue
		}
		first, last := o, o
		first.phase, first.reply.At, last.phase, last.call.At = opens, o.call.At, closes, o.reply.At
		all = append(all, first, last)
	}
	return explain(all, world{records: map[int64]identity{}})
}

// world is one ledger, without uncertainty.
type world struct {
	records map[int64]identity
	// bound is that of the trims of unknown outcome which have begun.
	bound int64
	// open are those of the other trims that have begun and not ended.
	open []int64
}

// vanish are the worlds that may be left of one at any time.
func (w world) vanish() []world { return w.without(slices.Max(append([]int64{w.bound}, w.open...))) }

func explain(left []operation, w world) bool {
	if !slices.ContainsFunc(left, func(o operation) bool { return o.Outcome != unknown }) {
		return true
	}
	first := int64(never)
	for _, o := range left {
		first = min(first, o.reply.At)
	}
	for i, o := range left {
		if o.call.At > first {
			continue
		}
		rest := slices.Delete(slices.Clone(left), i, i+1)
		for _, before := range w.vanish() {
			for _, after := range before.outcomes(o) {
				if explain(rest, after) {
					return true
				}
			}
		}
	}
	return false
}

// without are the worlds that are left when any of the records below a bound,
// but not the head, are gone.
func (w world) without(bound int64) []world {
	keys := slices.Sorted(maps.Keys(w.records))
	all := []world{w}
	for i, k := range keys {
		if k >= bound || i == len(keys)-1 {
			break
		}
		for _, v := range all {
			m := maps.Clone(v.records)
			delete(m, k)
			all = append(all, world{m, w.bound, w.open})
		}
	}
	return all
}

// outcomes are what a world may be after an operation.
func (w world) outcomes(o operation) []world {
	there, taken := w.records[o.Seq]
	switch o.Act {
	case actAppend:
		if !taken {
			m := maps.Clone(w.records)
			m[o.Seq] = o.Record
			return []world{{m, w.bound, w.open}}
		} else if o.Outcome != done {
			return []world{w}
		}
	case actGet:
		if o.Outcome == notFound && !taken || o.Outcome == done && taken && there == o.Found[0] {
			return []world{w}
		}
	case actTail:
		for _, v := range w.without(o.trimmed) {
			var want []identity
			for _, k := range slices.Backward(slices.Sorted(maps.Keys(v.records))) {
				if int64(len(want)) < o.Seq {
					want = append(want, v.records[k])
				}
			}
			if slices.Equal(want, o.Found) {
				return []world{w}
			}
		}
	case actTrim:
		switch {
		case o.Outcome == unknown:
			return []world{{w.records, max(w.bound, o.Seq), w.open}}
		case o.phase == opens:
			return []world{{w.records, w.bound, append(slices.Clip(w.open), o.Seq)}}
		case o.phase == closes:
			i := slices.Index(w.open, o.Seq)
			if i < 0 {
				return nil
			}
			return []world{{w.records, w.bound, slices.Delete(slices.Clone(w.open), i, i+1)}}
		case o.Removed > 0: // At an instant, as a store may.
			return w.without(o.Seq)
		default:
			return []world{w}
		}
	}
	return nil
}

// Small random histories, some of them as a ledger would answer, some of them
// spoilt, are judged as by trying all orders.
func TestCheckAgreesWithTryingAllOrders(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 2000
	}
	legal := 0
	for seed := range n {
		ops := randomHistory(rand.New(rand.NewPCG(uint64(seed), 1)))
		want := explained(ops)
		if want {
			legal++
		}
		_, err := (&History{ops: ops}).Check(0)
		if got := err == nil; got != want {
			t.Fatalf("seed %d: Check() = %v, want legal: %v, for %v", seed, err, want, ops)
		}
	}
	t.Logf("%d of %d histories were legal", legal, n)
	if legal < n/10 || legal > n*9/10 {
		t.Errorf("%d of %d histories were legal, want some of each", legal, n)
	}
}

// randomHistory runs a few operations at random instants on a ledger, loses some
// of the replies, widens the intervals, and then, in half of the cases, changes
// something.
func randomHistory(r *rand.Rand) []operation {
	w := world{records: map[int64]identity{}}
	pick := func(of []world) world { return of[r.IntN(len(of))] }
	var ops []operation
	for i := range 3 + r.IntN(5) {
		seq, claim := 1+r.Int64N(3), string(rune('a'+i))
		if r.IntN(8) == 0 {
			claim = "a" // the same record again
		}
		w = pick(w.without(w.bound))
		var o operation
		switch r.IntN(8) {
		case 0, 1, 2:
			o = appends(seq, claim, done)
			if _, taken := w.records[seq]; taken || r.IntN(6) == 0 {
				o.Outcome = conflict
			}
		case 3, 4:
			o = gets(seq, w.records[seq].Claim)
		case 5:
			o = tails(1 + r.Int64N(3))
			for k := int64(3); k > 0 && int64(len(o.Found)) < o.Seq; k-- {
				if f, ok := w.records[k]; ok {
					o.Found = append(o.Found, f)
				}
			}
		default:
			o = trims(1+r.Int64N(4), r.IntN(2))
		}
		instant := int64(100 + 10*i)
		o = o.at(instant-r.Int64N(25), instant+r.Int64N(25))
		if r.IntN(3) == 0 && (o.Act == actAppend || o.Act == actTrim) {
			o.Outcome, o.Removed, o.reply.At = unknown, 0, never
		}
		// An append of unknown outcome may also not have taken effect.
		if o.Outcome != unknown || o.Act == actTrim || r.IntN(2) == 0 {
			w = pick(w.outcomes(o))
		}
		ops = append(ops, o)
	}
	if r.IntN(2) == 0 {
		return ops
	}
	switch o := &ops[r.IntN(len(ops))]; {
	case o.Act == actAppend && o.Outcome != unknown:
		o.Outcome = []outcome{done, conflict}[r.IntN(2)]
	case o.Act == actGet:
		*o = gets(o.Seq, []string{"", "a", "b", "c"}[r.IntN(4)]).at(o.call.At, o.reply.At)
	case o.Act == actTail && len(o.Found) > 0:
		o.Found = o.Found[:len(o.Found)-1]
	case o.Act == actTrim && o.Outcome == done:
		o.Removed = r.IntN(2)
	}
	return ops
}
