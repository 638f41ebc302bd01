package tally

import (
	"slices"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/workerlease"
)

// DefaultTypes is how many worker types have series of their own by default.
const DefaultTypes = 100

// Options of New. The zero value is ready for use.
type Options struct {
	// Clock measures how long leases are held, and says what this machine takes for the time.
	// Default: workerlease.NewSystemClock.
	Clock clock.Clock
	// Types is how many worker types have series of their own. Default: DefaultTypes.
	Types int
	// Record gets the observations of histograms, if it isn't nil. Then they are not counted.
	Record func(in *Instrument, workerType string, x float64)
}

// Tally counts what an Observer gets. It is safe for concurrent use.
type Tally struct {
	clock  clock.Clock
	local  func() time.Duration
	most   int
	record func(in *Instrument, workerType string, x float64)

	mu      sync.Mutex
	series  map[string]*series
	workers []member
	sweepAt int // how many workers there are when those that have ended are looked for
}

// member is a worker that can be asked, and the series of its type.
type member struct {
	*workerlease.WorkerLease
	*series
}

// series are those of one worker type.
type series struct {
	workerType string
	sums       [][]float64 // by the number of the instrument, and of the label's value
	observed   []Distribution
	seen       []bool // the gauges that have a value, though it isn't asked for: by number
	holders    int    // leases that are held
	since      time.Duration
}

// Distribution is what a histogram has counted.
type Distribution struct {
	Count uint64
	Sum   float64
	// Buckets has how many observations are at most each of Instrument.Bounds, and not the bound before.
	Buckets []uint64
}

// New returns a tally of nothing.
func New(o Options) *Tally {
	if o.Clock == nil {
		o.Clock = workerlease.NewSystemClock()
	}
	if o.Types == 0 {
		o.Types = DefaultTypes
	}
	t := &Tally{clock: o.Clock, most: o.Types, record: o.Record, series: map[string]*series{}, sweepAt: 16}
	origin := o.Clock.Now()
	t.local = func() time.Duration { return o.Clock.Since(origin) }
	if b, ok := o.Clock.(interface{ Boottime() time.Duration }); ok {
		t.local = b.Boottime
	}
	return t
}

// of returns the series of a worker type, under its own name or, if there are too many, with others. The
// caller holds the mutex.
func (t *Tally) of(workerType string) *series {
	if s := t.series[workerType]; s != nil {
		return s
	}
	if len(t.series) >= t.most {
		workerType = Other
		if s := t.series[Other]; s != nil {
			return s
		}
	}
	s := &series{
		workerType: workerType, sums: make([][]float64, len(all)), observed: make([]Distribution, len(all)), seen: make([]bool, len(all)),
	}
	for i, in := range all {
		s.sums[i] = make([]float64, max(1, len(in.Values)))
		s.observed[i].Buckets = make([]uint64, len(in.Bounds))
	}
	t.series[workerType] = s
	return s
}

// add adds to a counter.
func (s *series) add(in *Instrument, x float64) { s.sums[in.number][0] += x }

// addBy adds to the counter of one value of its label.
func (s *series) addBy(in *Instrument, value string, x float64) {
	i := slices.Index(in.Values, value)
	if i < 0 {
		i = len(in.Values) - 1 // Other
	}
	s.sums[in.number][i] += x
}

// observe adds an observation, which is not negative, to a histogram.
func (t *Tally) observe(s *series, in *Instrument, d time.Duration) {
	x := max(d, 0).Seconds()
	if t.record != nil {
		t.record(in, s.workerType, x)
		return
	}
	o := &s.observed[in.number]
	o.Count++
	o.Sum += x
	if i, _ := slices.BinarySearch(in.Bounds, x); i < len(in.Bounds) {
		o.Buckets[i]++
	}
}

// hold counts that so many leases more are held from now on, and how long those before were.
func (t *Tally) hold(s *series, more int) {
	now := t.local()
	s.add(held, (time.Duration(s.holders) * (now - s.since)).Seconds())
	s.holders, s.since = max(0, s.holders+more), now
}

// join takes in a worker.
func (t *Tally) join(m member) {
	if m.WorkerLease == nil {
		return
	}
	if len(t.workers) >= t.sweepAt {
		t.sweep()
		t.sweepAt = max(16, 2*len(t.workers))
	}
	t.workers = append(t.workers, m)
}

// sweep forgets the workers that have ended.
func (t *Tally) sweep() {
	t.workers = slices.DeleteFunc(t.workers, func(m member) bool {
		select {
		case <-m.Done():
			return true
		default:
			return false
		}
	})
}
