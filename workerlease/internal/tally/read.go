package tally

import (
	"maps"
	"slices"
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

// Reading is a value of an instrument.
type Reading struct {
	*Instrument

	WorkerType string
	// Value is that of the label; empty if there is none.
	Value string
	// X is the value of a counter or gauge.
	X float64
	// Distribution is the value of a histogram.
	Distribution Distribution
}

// Read returns all values as they are now, by worker type and instrument. Workers are asked for what is so
// at the moment; the store isn't.
func (t *Tally) Read() []Reading {
	now := t.ask()
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Reading
	for _, workerType := range slices.Sorted(maps.Keys(t.series)) {
		s := t.series[workerType]
		t.hold(s, 0)
		s.take(now[s])
		for _, in := range all {
			out = append(out, s.read(in)...)
		}
	}
	return out
}

// read returns the values of an instrument. What has no value, and Other while nothing was counted under it, are left
// out.
func (s *series) read(in *Instrument) (out []Reading) {
	r := Reading{Instrument: in, WorkerType: s.workerType}
	switch {
	case in.Kind == Histogram:
		r.Distribution = s.observed[in.number]
		r.Distribution.Buckets = slices.Clone(r.Distribution.Buckets)
	case in.Kind == Gauge && !s.seen[in.number]:
		return nil
	case in.Label != "":
		for i, x := range s.sums[in.number] {
			if r.Value, r.X = in.Values[i], x; r.Value != Other || x > 0 {
				out = append(out, r)
			}
		}
		return out
	default:
		r.X = s.sums[in.number][0]
	}
	return []Reading{r}
}

// moment is what is so now for the workers of one type: the values of gauges.
type moment map[*Instrument]float64

// ask asks all workers, and forgets those that have ended.
func (t *Tally) ask() map[*series]moment {
	t.mu.Lock()
	t.sweep()
	asked := slices.Clone(t.workers)
	t.mu.Unlock()
	out := map[*series]moment{}
	for _, w := range asked {
		if out[w.series] == nil {
			out[w.series] = moment{}
		}
		out[w.series].add(t, w.WorkerLease)
	}
	return out
}

// add takes in what is so for one worker. Where there are several, what is worse counts, or what is so for
// any of them.
func (m moment) add(t *Tally, w *workerlease.WorkerLease) {
	s := w.Status()
	holder, known := w.Holder()
	m[workers]++
	m.largest(holding, truth(w.IsHolder()))
	if known || s.First.IsZero() {
		m.largest(holderKnown, truth(known)) // else nobody can have anything yet
	}
	m.largest(running, truth(s.Running))
	m.latest(doneUntil, s.DoneUntil)
	m.latest(due, s.Due)
	m.largest(slotDone, truth(s.StoreTime.Before(s.DoneUntil)))
	m.largest(token, float64(holder.Token))
	m.smallest(healthy, truth(s.Healthy()))
	m.smallest(eligible, truth(s.Ineligible == ""))
	m.largest(blocked, truth(s.Blocked != ""))
	m.smallest(paused, truth(s.Paused != ""))
	m.largest(overrunning, truth(s.Overrunning))
	m.smallest(priority, float64(s.Effective))
	m.largest(failing, float64(s.Failures))
	m.largest(warning, truth(s.Warning != ""))
	if s.StoreTime.IsZero() {
		return
	}
	m[offset] = t.clock.Now().Sub(s.StoreTime).Seconds()
	m.largest(uncertainty, s.Uncertainty.Seconds())
	m.largest(sampleAge, s.SampleAge.Seconds())
}

func (m moment) largest(in *Instrument, x float64) {
	if old, ok := m[in]; !ok || x > old {
		m[in] = x
	}
}

// latest takes in a time as Unix time, if there is one.
func (m moment) latest(in *Instrument, t time.Time) {
	if !t.IsZero() {
		m.largest(in, float64(t.UnixMilli())/1000)
	}
}

func (m moment) smallest(in *Instrument, x float64) {
	if old, ok := m[in]; !ok || x < old {
		m[in] = x
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// take sets the gauges to what is so now. Those that only grow, or say when something was, keep their values.
func (s *series) take(m moment) {
	for _, in := range all {
		x, ok := m[in]
		switch {
		case in.Kind != Gauge || in == lastSuccess:
		case in == token:
			if x > s.sums[in.number][0] {
				s.sums[in.number][0], s.seen[in.number] = x, true
			}
		case in == workers:
			s.sums[in.number][0], s.seen[in.number] = x, true
		default:
			s.sums[in.number][0], s.seen[in.number] = x, ok
		}
	}
}
