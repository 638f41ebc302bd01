// Package timeline is the arithmetic of store time: it turns stamps of the
// store's clock into an interval that surely contains store time, at any reading
// of the local clock. It is pure: no clock, no goroutine, no lock.
//
// It is the idea of TrueTime (Corbett et al., "Spanner: Google's
// Globally-Distributed Database", OSDI 2012, §3) and of Marzullo's intersection
// of intervals ("Maintaining the Time in a Distributed System", 1984) in
// miniature, with one source, the store.
//
// # One sample
//
// A stamp S that was taken between the local readings a (request sent) and b
// (reply received) says that store time at b is within
//
//	[S − skew, S + granularity + maxAge + (b−a)·(1+ρ) + skew]
//
// since the stamp was cut down to its granularity, may have been maxAge old, and
// was made at the latest when the reply came and at the earliest when the
// request left. ρ is [MaxDrift]: while the local clock counts d, store time
// passes by d − ρ·d at least and d + ρ·d at most.
//
// # A store whose clock is the local one
//
// Store time may be the very clock that local readings are taken of, give or take a fixed
// offset. A stamp of such a store names the reading B that it was made from ([store.Stamp].Boottime).
// Then that offset is known as well as the stamp shows the time, however long request and reply
// travelled, and ρ is 0 from then on: store time minus the local clock is within
//
//	[S − B − skew, S − B + granularity + maxAge + skew]
//
// at b and later. If B isn't within [a, b], it is a reading of another clock, and the stamp is
// one like any other. What follows a stamp like any other may drift, whatever earlier ones said.
//
// # Many samples
//
// Each sample bounds the offset between store time and the local clock. A bound
// grows on both sides by ρ times its age, unless it is steady; successive bounds are intersected.
//
// A store may have several clocks, and any of them may be what another worker takes for
// store time: the interval contains them all, by the skew of the stamps. How far they are
// apart may turn out only later, when a server can be asked that could not be before. So if
// stamps name their clock, or their skew grows, what is intersected is the bound of that one
// clock, without skew; the newest skew is added to that.
//
// # Jumps
//
// If the intersection is empty, one of the clocks jumped, the answer was wrong, or
// another server answered whose clock is further off than it claims. That is not known
// yet, so the new bound stands beside the old one as another clock in question, and
// every reader gets the hull of both ([Contradicted]). Servers that answer in turn may
// leave it at that: what is uncertain is then how far they are apart.
//
// When [Confirm] samples in a row agree with one clock and contradict another, that one
// goes. If fewer samples than that ever agreed with it, it was a wrong answer
// ([Dropped]). Else it was in force, and workers may still act by it ([Jumped]): its
// bound is kept, under a growing epoch. A reader says up to which epoch it has settled,
// and gets the hull of all that came later, so that it is right whichever clock was.
// When to settle is the reader's decision.
package timeline
