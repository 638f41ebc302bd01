// Package priority decides when, ahead of a boundary, a worker may claim the slot
// that starts there.
//
// Claims for a slot open a [Lead] before its boundary. From there on each of the eight
// priorities has its turn, highest first; [Turns] is the schedule. A worker may claim from
// its place within its turn, and the first claim has the slot. Nobody's place is in a turn's
// last quarter, so that a higher priority that is alive mostly has claimed before a lower one looks.
// One that is dead costs no working time, because all turns end before the boundary:
//
//	boundary − Lead                                              boundary
//	|— 0 —|— 1 —|— 2 —|— 3 —|— 4 —|— 5 —|— 6 —|— 7 —|               |
//	 Step
//
// With slots of 5 minutes the lead is 10 s and a step 1 s: priority 0 may claim
// from 10 s before the boundary on, priority 2 from 8 s before it.
//
// Workers of equal priority share a turn. [TieBreak] decides which of them comes first there:
// the last holder, another one, a random one, or the one that is to have the slot.
//
// The order is a preference, not a promise: a claim that reaches the store more than a
// quarter of a step late can be overtaken by a lower priority. The promise is that on one turn
// schedule and clock, a lower priority's place comes at least that much after a higher one's.
//
// The package is pure arithmetic, without a clock or randomness. All of it is safe for
// concurrent use.
package priority
