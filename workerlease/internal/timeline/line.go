package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Outcome is what a sample did to the line.
type Outcome int

// The outcomes.
const (
	// Rejected: the stamp is not a plausible time, and was ignored.
	Rejected Outcome = iota
	// First: nothing was known before.
	First
	// Narrowed: the sample agrees with what was known.
	Narrowed
	// Contradicted: the sample agrees with nothing that was known. It is one more clock
	// in question.
	Contradicted
	// Dropped: the sample confirms one clock, so that another is out of question, which
	// too few samples have shown.
	Dropped
	// Jumped: the sample confirms one clock, so that another is out of question, which
	// was in force before.
	Jumped
)

// String names the outcome.
func (o Outcome) String() string {
	return [...]string{"rejected", "first", "narrowed", "contradicted", "dropped", "jumped"}[o]
}

// Confirm is how many samples in a row decide between clocks: they agree with one and
// contradict another. A clock that fewer samples have ever agreed with was never in
// force.
const Confirm = 3

const (
	// maxClocks is how many clocks are in question at once.
	maxClocks = 4
	// maxPast is how many bounds from before a jump are kept apart. More are merged:
	// that only widens what unsettled readers get.
	maxPast = 4
	// maxReturns bounds how often the number of samples that decide doubles, each time that a clock
	// which had been in force comes back within recur. So servers whose clocks contradict each
	// other, and which answer in turn, end no epoch each time that one of them happens to answer
	// several times in a row: their clocks stay in question together.
	maxReturns = 2
	recur      = 5 * time.Minute
)

// Line is what is known of store time. The zero Line knows nothing. It is not
// safe for concurrent use.
type Line struct {
	// Confirm, if not 0, takes the place of the constant.
	Confirm int
	// Boottime says that local readings are those of the clock that Stamp.Boottime is about. If not,
	// that is ignored.
	Boottime bool

	clocks []clock       // those in question, at least one as soon as anything is known
	fresh  time.Duration // local reading of the newest sample
	epoch  int
	began  time.Duration // local reading at which the epoch began
	jumps  int
	past   []past

	gone    []bound // of the clocks that were in force and put out of question of late
	returns int     // how often one of them has come back
}

// clock is what store time may be, by the samples that agree with one another. Its bound is that of
// the clocks of all servers.
type clock struct {
	bound
	skew    time.Duration // by how much the newest stamp widened the bound, and earlier ones no less
	own     bound         // of the clock alone that made the newest stamp
	name    string        // which clock that is, or "" if it isn't known to be always the same
	samples int           // that agreed with it
	run     int           // how many of late agreed with it in a row or, if negative, contradicted it
}

// past is a bound that was in force before an epoch began.
type past struct {
	bound
	before int
}

// plausible bounds stamps to times whose nanoseconds can be counted, and what
// widens them to what can be added to that.
func plausible(s store.Stamp, trip time.Duration) bool {
	for _, d := range []time.Duration{s.Granularity, s.MaxAge, s.Skew, trip} {
		if d < 0 || d > longest {
			return false
		}
	}
	return s.Time.Year() >= 1970 && s.Time.Year() < 2200
}

// longest is more than any part of a sample that is of use.
const longest = 365 * 24 * time.Hour

// Add takes in a stamp that was asked for at the local reading sent and arrived
// at received.
func (l *Line) Add(s store.Stamp, sent, received time.Duration) Outcome {
	trip := received - sent
	if !plausible(s, trip) {
		return Rejected
	}
	at := s.Time.UnixNano() - int64(received)
	own := bound{lo: at, hi: at + int64(s.Granularity+s.MaxAge+trip) + drift(trip), at: received}
	if l.Boottime && s.Boottime > 0 && sent <= s.Boottime && s.Boottime <= received {
		at = s.Time.UnixNano() - int64(s.Boottime)
		own = bound{lo: at, hi: at + int64(s.Granularity+s.MaxAge), at: received, steady: true}
	}
	sample := clock{bound: own.widened(s.Skew), skew: s.Skew, own: own, name: s.Clock, samples: 1, run: 1}
	if len(l.clocks) == 0 {
		l.clocks, l.fresh = []clock{sample}, received
		return First
	}
	l.fresh = max(l.fresh, received)
	if len(l.clocks) > 1 && l.reconcile(sample) {
		return Narrowed
	}
	agreed := false
	for i := range l.clocks {
		agreed = l.clocks[i].add(sample) || agreed
	}
	if !agreed {
		l.jumps++
		l.question(sample)
		return Contradicted
	}
	return l.decide()
}

// reconcile makes one of all clocks that a sample agrees with, if there are several. By
// now they are too uncertain, or the sample is, to contradict one another. It reports
// whether it did so: then the sample says too little to narrow the clock.
func (l *Line) reconcile(sample clock) bool {
	agreeing, others := clock{}, make([]clock, 0, len(l.clocks))
	n := 0
	for _, c := range l.clocks {
		switch agrees := c.agrees(sample); {
		case !agrees:
			others = append(others, c)
			continue
		case n == 0:
			agreeing = c
		default:
			agreeing = merge(agreeing, c)
		}
		n++
	}
	if n > 1 {
		if sample.name != "" || sample.skew > agreeing.skew {
			agreeing.bound = hull(agreeing.bound, agreeing.narrowed(sample).widened(sample.skew))
			agreeing.skew = max(agreeing.skew, sample.skew)
		}
		agreeing.bound, agreeing.own = agreeing.after(sample.own), agreeing.own.after(sample.own)
		l.clocks = append(others, agreeing)
	}
	return n > 1
}

// merge is the clock that is either of two.
func merge(a, b clock) clock {
	c := clock{bound: hull(a.bound, b.bound), skew: min(a.skew, b.skew), own: hull(a.own, b.own), samples: a.samples + b.samples, run: max(a.run, b.run)}
	if a.name == b.name {
		c.name = a.name
	}
	return c
}

// agrees reports whether a sample agrees with the clock.
func (c *clock) agrees(sample clock) bool {
	_, agrees := both(c.bound, sample.bound)
	return agrees
}

// add takes in a sample, and reports whether it agrees.
func (c *clock) add(sample clock) bool {
	if !c.agrees(sample) {
		c.run = min(c.run, 0) - 1
		return false
	}
	c.samples, c.run = c.samples+1, max(c.run, 0)+1
	c.own = c.narrowed(sample)
	if c.name == "" && sample.name == "" && sample.skew <= c.skew {
		c.bound, _ = both(c.bound, sample.bound)
	} else {
		// The newest stamp says how far the others are from its clock: earlier ones may not have known
		// of all of them, or a clock was set since, or the local one stood still, by less than that.
		c.bound = c.own.widened(sample.skew)
	}
	c.skew, c.name = sample.skew, sample.name
	return true
}

// narrowed is the bound of the clock that made a sample, by what was known before as well, if that
// agrees: two stamps of one clock needn't if it was set.
func (c *clock) narrowed(sample clock) bound {
	known := c.own
	if c.name == "" || c.name != sample.name {
		known = known.widened(sample.skew)
	}
	if own, agree := both(known, sample.own); agree {
		return own
	}
	return sample.own
}

// question adds a clock to those in question.
func (l *Line) question(c clock) {
	l.gone = slices.DeleteFunc(slices.Clone(l.gone), func(b bound) bool { return c.at-b.at > recur })
	back := func(b bound) bool { _, agrees := both(b, c.bound); return agrees }
	switch {
	case len(l.gone) == 0:
		l.returns = 0
	case slices.ContainsFunc(l.gone, back):
		l.returns = min(l.returns+1, maxReturns)
	}
	l.clocks = append(slices.Clip(l.clocks), c)
	if len(l.clocks) > maxClocks {
		l.clocks[1] = merge(l.clocks[0], l.clocks[1])
		l.clocks = l.clocks[1:]
	}
}

// decide puts out of question the clocks that were contradicted by all of the samples
// that confirm another. One of those that had been in force ends its epoch.
func (l *Line) decide() Outcome {
	confirm := cmp.Or(l.Confirm, Confirm)
	enough := confirm << l.returns
	confirmed := func(c clock) bool { return c.run >= enough }
	if len(l.clocks) == 1 || !slices.ContainsFunc(l.clocks, confirmed) {
		return Narrowed
	}
	outcome := Narrowed
	l.clocks = slices.DeleteFunc(slices.Clone(l.clocks), func(c clock) bool {
		switch {
		case c.run > -enough:
			return false
		case c.samples < confirm:
			outcome = max(outcome, Dropped)
		default:
			outcome = Jumped
			l.begin(c.bound)
			l.gone = append(slices.Clip(l.gone), c.shifted(l.fresh))
			l.gone = l.gone[max(0, len(l.gone)-maxClocks):]
		}
		return true
	})
	return outcome
}

// begin starts a new epoch, after a clock was in force.
func (l *Line) begin(b bound) {
	l.epoch++
	l.began = l.fresh
	l.past = append(slices.Clip(l.past), past{b, l.epoch})
	if len(l.past) > maxPast {
		l.past[1] = past{hull(l.past[0].bound, l.past[1].bound), l.past[1].before}
		l.past = l.past[1:]
	}
}

// At returns an interval that contains store time at a local reading, for a
// reader that has settled all epochs up to settled. It is the zero Interval
// while nothing is known.
func (l *Line) At(local time.Duration, settled int) Interval {
	if len(l.clocks) == 0 {
		return Interval{}
	}
	b := l.clocks[0].shifted(local)
	for _, c := range l.clocks[1:] {
		b = hull(b, c.shifted(local))
	}
	for _, p := range l.past {
		if p.before > settled {
			b = hull(b, p.shifted(local))
		}
	}
	return Interval{
		Earliest: time.Unix(0, int64(local)+b.lo).UTC(),
		Latest:   time.Unix(0, int64(local)+b.hi).UTC(),
		steady:   b.steady,
	}
}

// Age is how long ago, by the local clock, the newest sample arrived. It means
// nothing while nothing is known.
func (l *Line) Age(local time.Duration) time.Duration { return max(local-l.fresh, 0) }

// remember is how long a reader that begins anew minds what came before a jump.
const remember = 24 * time.Hour

// Settled is the epoch up to which a reader that begins at a local reading has
// settled: it minds the jumps of late, although it has read nothing before them.
func (l *Line) Settled(local time.Duration) int {
	for _, p := range l.past {
		if local-p.at < remember {
			return p.before - 1
		}
	}
	return l.epoch
}

// Epoch counts the jumps: how often a clock was put out of question that had been in
// force.
func (l *Line) Epoch() int { return l.epoch }

// Began is the local reading at which the epoch began.
func (l *Line) Began() time.Duration { return l.began }

// InQuestion reports that samples contradict one another, and further ones haven't
// decided yet.
func (l *Line) InQuestion() bool { return len(l.clocks) > 1 }

// Single reports that all that is known comes from a single sample, which may be a wrong
// answer.
func (l *Line) Single() bool { return len(l.clocks) == 1 && l.clocks[0].samples == 1 && l.epoch == 0 }

// Jumps counts the contradictions, those included that turned out to be nothing.
func (l *Line) Jumps() int { return l.jumps }
