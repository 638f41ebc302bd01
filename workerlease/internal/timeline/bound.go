package timeline

import "time"

// bound says that store time minus the local clock was within [lo, hi]
// nanoseconds at the local reading at. If it is steady, that difference doesn't
// change after that.
type bound struct {
	lo, hi int64
	at     time.Duration
	steady bool
}

// drift is how far the clocks may have come apart in d.
func drift(d time.Duration) int64 { return int64(d.Abs()/perDrift) + 1 }

// shifted returns the bound as of another local reading.
func (b bound) shifted(at time.Duration) bound {
	if at == b.at {
		return b
	}
	if b.steady && at > b.at {
		return bound{b.lo, b.hi, at, true}
	}
	w := drift(at - b.at)
	return bound{b.lo - w, b.hi + w, at, b.steady}
}

// after returns the bound as a sample leaves it that doesn't narrow it. If that isn't steady, nothing is
// from then on.
func (b bound) after(sample bound) bound {
	if sample.steady || !b.steady || sample.at < b.at {
		return b
	}
	return bound{b.lo, b.hi, sample.at, false}
}

// widened returns the bound of what is within a skew of it.
func (b bound) widened(by time.Duration) bound {
	return bound{b.lo - int64(by), b.hi + int64(by), b.at, b.steady}
}

// both is the bound that two bounds give together, and whether they agree. Whether it is steady, the
// later one says: by then the earlier one has widened if it had to, and from then on a clock may go
// otherwise than before.
func both(a, b bound) (_ bound, agree bool) {
	if a.at > b.at {
		a, b = b, a
	}
	steady := b.steady && (a.steady || a.at < b.at)
	a = a.shifted(b.at)
	c := bound{max(a.lo, b.lo), min(a.hi, b.hi), b.at, steady}
	return c, c.lo <= c.hi
}

// hull is the bound that contains two bounds.
func hull(a, b bound) bound {
	at := max(a.at, b.at)
	a, b = a.shifted(at), b.shifted(at)
	return bound{min(a.lo, b.lo), max(a.hi, b.hi), at, a.steady && b.steady}
}
