package machine_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// exactly is an interval of no width.
func exactly(t time.Time) timeline.Interval { return timeline.Interval{Earliest: t, Latest: t} }

func TestAnOverrideWithAWindowOrFarAheadIsPoison(t *testing.T) {
	good := store.Record{
		WorkerType: "mail", Seq: 6, Kind: store.KindOverride, InstanceID: "op", Claim: "o1", Token: eve.UnixMilli(),
		WindowStart: eve, WindowEnd: eve,
	}
	at := func(start, end time.Duration) store.Record {
		r := good
		r.WindowStart, r.WindowEnd = eve.Add(start), eve.Add(end)
		return r
	}
	for name, test := range map[string]struct {
		r      store.Record
		poison bool
	}{
		"now":            {good, false},
		"long ago":       {at(-1000*time.Hour, -1000*time.Hour), false},
		"10 min ahead":   {at(10*time.Minute, 10*time.Minute), false},
		"further ahead":  {at(10*time.Minute+1, 10*time.Minute+1), true},
		"with a window":  {at(0, time.Minute), true},
		"with a short 1": {at(0, time.Millisecond), true},
	} {
		if why := ledger.At(eve).Unfit(store.Record{}, test.r); (why != nil) != test.poison {
			t.Errorf("%s: %v, want poison: %v", name, why, test.poison)
		}
	}
}

// order is how a store returns records: newest first, but for one without a key.
func order(records []store.Record) []store.Record {
	slices.SortFunc(records, func(a, b store.Record) int {
		if a.Seq == 0 || b.Seq == 0 {
			return cmp.Compare(a.Seq, b.Seq)
		}
		return cmp.Compare(b.Seq, a.Seq)
	})
	return records
}

// What an operator is shown, and what the override repeats of it.
func TestLookBelow(t *testing.T) {
	grant := func(seq int64, claim string, from, to time.Duration) store.Record {
		return store.Record{
			WorkerType: "mail", Seq: seq, Kind: store.KindGrant, InstanceID: claim, Claim: claim, Token: eve.Add(from).UnixMilli(),
			WindowStart: eve.Add(from), WindowEnd: eve.Add(to), SlotStart: eve.Add(from), SlotEnd: eve.Add(to), Schedule: "every 5m", ReadAt: eve.Add(from),
		}
	}
	with := func(r store.Record, change func(*store.Record)) store.Record { change(&r); return r }
	release := func(seq int64, of store.Record, at time.Duration) store.Record {
		return with(of, func(r *store.Record) {
			r.Seq, r.Kind, r.WindowStart, r.WindowEnd = seq, store.KindRelease, eve.Add(at), eve.Add(at)
		})
	}
	const m = time.Minute
	first := grant(1, "a", -10*m, -5*m)
	held := grant(2, "b", -5*m, 5*m)
	done := func(r store.Record, until time.Duration) store.Record {
		return with(r, func(r *store.Record) { r.DoneUntil, r.Attempt = eve.Add(until), 3 })
	}
	defect := func(seq int64) store.Record {
		return store.Record{WorkerType: "mail", Seq: seq, Defect: "not a record"}
	}
	overridden := with(grant(3, "op", -m, -m), func(r *store.Record) { r.Kind, r.Token = store.KindOverride, held.Token+1 })
	another := func(seq int64) store.Record {
		return with(overridden, func(r *store.Record) { r.Seq, r.Claim, r.Token = seq, "again", r.Token+1 })
	}
	weekly := func(r *store.Record) {
		r.Schedule, r.SlotStart, r.SlotEnd = "each week", eve.Add(-24*time.Hour), eve.Add(6*24*time.Hour)
	}
	for name, test := range map[string]struct {
		records []store.Record // oldest first
		head    int64
		poison  bool
		terms   []int64
		last    int64 // the newest override
		above   int   // how many records stand above a free key
		stuck   bool
		token   int64 // the least; 0: that of now
		done    time.Duration
		attempt int
	}{
		"nothing":                {},
		"a lease":                {records: []store.Record{first, held}, head: 2, terms: []int64{2}},
		"a lease that is over":   {records: []store.Record{first}, head: 1},
		"a release":              {records: []store.Record{first, held, release(3, held, -m)}, head: 3},
		"a release of another's": {records: []store.Record{first, held, release(3, grant(2, "c", -5*m, 5*m), -m)}, head: 3, poison: true, terms: []int64{2}},
		"a release of the past":  {records: []store.Record{first, held, release(3, held, -5*m)}, head: 3, poison: true, terms: []int64{2}},
		"an extension":           {records: []store.Record{first, held, with(grant(3, "b", 5*m, 6*m), func(r *store.Record) { r.Token = held.Token })}, head: 3, terms: []int64{3}},
		"the next slot":          {records: []store.Record{first, held, grant(3, "c", 5*m, 10*m)}, head: 3, terms: []int64{3, 2}, token: eve.Add(5 * m).UnixMilli()},
		"below an override":      {records: []store.Record{first, held, overridden}, head: 3, terms: []int64{2}, last: 3},
		"another's claim":        {records: []store.Record{first, held, with(grant(3, "b", -20*m, -19*m), func(r *store.Record) { r.InstanceID = "eve" })}, head: 3, poison: true, terms: []int64{2}},
		"poison above":           {records: []store.Record{first, held, defect(3), defect(4)}, head: 4, poison: true, terms: []int64{2}},
		"above a free key":       {records: []store.Record{first, held, grant(9, "c", 5*m, 10*m)}, head: 2, terms: []int64{2}, above: 1},
		"no key":                 {records: []store.Record{first, held, defect(0)}, head: 2, terms: []int64{2}},
		"a token far ahead":      {records: []store.Record{first, held, with(grant(3, "c", 5*m, 10*m), func(r *store.Record) { r.Token = eve.Add(20 * m).UnixMilli() })}, head: 3, poison: true, terms: []int64{2, 3}},
		"what is done":           {records: []store.Record{first, done(held, 5*m)}, head: 2, terms: []int64{2}, done: 5 * m, attempt: 3},
		"what is done, for a day": {
			records: []store.Record{first, done(held, 24*time.Hour+5*m)}, head: 2, terms: []int64{2}, done: 24*time.Hour + 5*m, attempt: 3,
		},
		"what is done, for long": {
			records: []store.Record{done(first, -5*m), done(held, 25*time.Hour)}, head: 2, terms: []int64{2}, done: -5 * m, attempt: 3,
		},
		"what is done, and forgotten": {records: []store.Record{done(first, -5*m), held}, head: 2, terms: []int64{2}, done: -5 * m},
		"what an override has opened": {records: []store.Record{first, done(held, 5*m), overridden}, head: 3, terms: []int64{2}, last: 3},
		"what a mistaken override says is done": {
			records: []store.Record{first, done(held, 5*m), done(overridden, 2000*time.Hour)}, head: 3, terms: []int64{2}, last: 3, done: 5 * m, attempt: 3,
		},
		"what was opened below a mistaken override": {
			records: []store.Record{first, done(held, 5*m), overridden, done(another(4), 2000*time.Hour)}, head: 4, terms: []int64{2}, last: 4, attempt: 3,
		},
		"a slot of a week that is done, of a schedule that isn't known": {
			records: []store.Record{with(done(grant(1, "a", -24*time.Hour, -m), 6*24*time.Hour), weekly)}, head: 1, done: 6 * 24 * time.Hour, attempt: 3,
		},
		"more than such a slot": {records: []store.Record{with(done(grant(1, "a", -24*time.Hour, -m), 9*24*time.Hour), weekly)}, head: 1, attempt: 3},
		"poison alone":          {records: []store.Record{defect(205), defect(206)}, head: 206, poison: true, stuck: true},
	} {
		t.Run(name, func(t *testing.T) {
			newest := slices.Clone(test.records)
			order(newest)
			b, enough := machine.LookBelow(newest, 64, exactly(eve))
			var terms []int64
			for _, r := range b.Terms {
				terms = append(terms, r.Seq)
			}
			if !enough || b.Head.Seq != test.head || (b.Why != nil) != test.poison || !slices.Equal(terms, test.terms) {
				t.Fatalf("LookBelow() = head %d, %v, terms %v, %v; want head %d, poison %v, terms %v", b.Head.Seq, b.Why, terms, enough, test.head, test.poison, test.terms)
			}
			if b.LastOverride != test.last || len(b.Unreachable) != test.above || b.Stuck != test.stuck {
				t.Errorf("the last override is %d, %d records stand above a free key, stuck %v; want %d, %d, %v", b.LastOverride, len(b.Unreachable), b.Stuck, test.last, test.above, test.stuck)
			}
			if test.head == 0 {
				return
			}
			r, err := b.Override(store.Record{InstanceID: "op", Claim: "new"}, eve, exactly(eve))
			least := max(eve.UnixMilli(), test.token+1)
			if err != nil || r.Check() != nil || r.Seq != test.head+1 || r.Token != least || !r.WindowStart.Equal(eve) || !r.WindowEnd.Equal(eve) || r.Attempt != test.attempt {
				t.Errorf("Override() = %+v, %v (%v), want token %d", r, err, r.Check(), least)
			}
			if want := eve.Add(test.done); test.done == 0 && !r.DoneUntil.IsZero() || test.done != 0 && !r.DoneUntil.Equal(want) {
				t.Errorf("Override() says that slots are done up to %v, want %v", r.DoneUntil, want)
			}
			// Workers obey it, now and when what was too far ahead for its writer is so no more.
			for _, later := range []time.Duration{0, time.Hour, 1000 * time.Hour} {
				if b, _ := machine.LookBelow(order(append([]store.Record{r}, newest...)), 64, exactly(eve.Add(later))); b.Head.Seq != r.Seq || b.Why != nil {
					t.Errorf("%v later, workers go by %d, and refuse it because %v", later, b.Head.Seq, b.Why)
				}
			}
		})
	}
	// An hour later, the record right below the override has a higher token, and can be obeyed.
	// Only what is below shows that the writer could not.
	above := with(grant(4, "op", 0, 0), func(r *store.Record) { r.Kind = store.KindOverride })
	ahead := with(grant(3, "c", 5*m, 10*m), func(r *store.Record) { r.Token = eve.Add(20 * m).UnixMilli() })
	if _, enough := machine.LookBelow([]store.Record{above, ahead}, 2, exactly(eve.Add(time.Hour))); enough {
		t.Error("an override and what it seems to contradict are enough, want more to be read")
	}
	var poison []store.Record
	for i := range int64(64) {
		poison = append(poison, defect(300-i))
	}
	if _, enough := machine.LookBelow(poison, 64, exactly(eve)); enough {
		t.Error("64 records that can't be obeyed are enough, want more to be read")
	}
	if b, enough := machine.LookBelow(poison, 512, exactly(eve)); !enough || b.Head.Seq != 300 || b.Why == nil {
		t.Errorf("LookBelow() of nothing but poison = %+v, %v", b, enough)
	}
	full := with(grant(store.MaxSeq-1, "a", -m, m), func(*store.Record) {})
	b, _ := machine.LookBelow([]store.Record{full, with(full, func(r *store.Record) {
		r.Seq--
		r.Claim = "z"
		r.Token -= 5
		r.WindowStart, r.WindowEnd = eve.Add(-2*m), eve.Add(-m)
	})}, 2, exactly(eve))
	if r, err := b.Override(store.Record{InstanceID: "op", Claim: "new"}, eve, exactly(eve)); err == nil {
		t.Errorf("Override() at the last key = %+v, want an error", r)
	}
}

// An override that takes a free key makes what stands above it reachable.
func TestWhatWorkersGoByAfterAnOverride(t *testing.T) {
	grant := func(seq int64, from, to time.Duration) store.Record {
		return store.Record{
			WorkerType: "mail", Seq: seq, Kind: store.KindGrant, InstanceID: "w", Claim: string(rune('a' + seq)), Token: eve.Add(from).UnixMilli() + seq,
			WindowStart: eve.Add(from), WindowEnd: eve.Add(to),
		}
	}
	const m = time.Minute
	defect := store.Record{WorkerType: "mail", Seq: 4, Defect: "not a record"}
	for name, test := range map[string]struct {
		above  []store.Record // oldest first
		head   int64
		poison bool
	}{
		"nothing above":            {nil, 2, false},
		"a window":                 {[]store.Record{grant(3, m, 60*m)}, 3, false},
		"a window of the past":     {[]store.Record{grant(3, -m, 60*m)}, 3, true},
		"two":                      {[]store.Record{grant(3, m, 60*m), defect}, 4, true},
		"above another free key":   {[]store.Record{grant(4, m, 60*m)}, 2, false},
		"one of them above a free": {[]store.Record{grant(3, m, 60*m), grant(5, 60*m, 61*m)}, 3, false},
	} {
		b, enough := machine.LookBelow(order(append([]store.Record{grant(1, -m, 365*24*time.Hour)}, test.above...)), 64, exactly(eve))
		if !enough || b.Head.Seq != 1 || len(b.Unreachable) != len(test.above) {
			t.Errorf("%s: LookBelow() = %+v, %v", name, b, enough)
		}
		r, err := b.Override(store.Record{InstanceID: "op", Claim: "new"}, eve, exactly(eve))
		if err != nil {
			t.Fatal(err)
		}
		if head, why := b.After(r, exactly(eve)); head.Seq != test.head || (why != nil) != test.poison {
			t.Errorf("%s: After() = %d, %v, want %d, poison: %v", name, head.Seq, why, test.head, test.poison)
		}
	}
}
