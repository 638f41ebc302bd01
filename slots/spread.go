package slots

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// spread is a schedule whose boundaries are a constant time later than those of another one, in
// milliseconds.
type spread struct {
	of Schedule
	by int64
}

// Spread makes a schedule whose boundaries are later by a time that a name chooses, less than within. So
// many jobs of one schedule, each with its name, don't begin in the same second; the name is that of the
// worker type. The time is the same on all machines and in all versions. It passes as elapsed time: where
// clocks change in it, local times differ by that change.
//
// The time is whole milliseconds, and within at most the shortest slot, so that each job keeps its place in
// its own slot. See [Shortest]. The schedule is one of this package, and not spread already.
func Spread(s Schedule, within time.Duration, name string) (Schedule, error) {
	switch shortest := Shortest(s); {
	case name == "":
		return nil, errors.New("spread: the name of the job is empty, by which its place is chosen")
	case within < time.Millisecond || within > shortest:
		return nil, fmt.Errorf("spread %v: want at least %v, and at most the shortest slot (%v)", within, time.Millisecond, tidy(shortest))
	}
	return shift(s, time.Duration(place(name, within.Milliseconds()))*time.Millisecond)
}

// place is a number from 0 to less than n that a name chooses: the first eight bytes of its SHA-256, as a
// number, modulo n. Schedules in records follow from it, so it never changes.
func place(name string, n int64) int64 {
	sum := sha256.Sum256([]byte(name))
	return int64(binary.BigEndian.Uint64(sum[:8]) % uint64(n))
}

// shift makes a schedule whose boundaries are later.
func shift(s Schedule, by time.Duration) (Schedule, error) {
	switch s.(type) {
	case every, *cronSchedule, *joined:
	default:
		return nil, fmt.Errorf("schedule %.70q can't be shifted: it is no schedule of this package, or is shifted already", s)
	}
	switch {
	case by == 0:
		return s, nil
	case by < 0 || by > MaxInterval || by%time.Millisecond != 0:
		return nil, fmt.Errorf("shifted %v: want whole milliseconds, at most 366 days", by)
	}
	return bounded(spread{s, by.Milliseconds()})
}

// Unshifted is a schedule before [Spread], and by how much its boundaries are later now; 0 for one that isn't
// spread.
func Unshifted(s Schedule) (of Schedule, by time.Duration) {
	if s, ok := s.(spread); ok {
		return s.of, s.duration()
	}
	return s, 0
}

func (s spread) duration() time.Duration { return time.Duration(s.by) * time.Millisecond }

// At is the slot that contains t.
func (s spread) At(t time.Time) Slot { return s.later(s.of.At(t.Add(-s.duration()))) }

// Next is the slot after the one that contains t.
func (s spread) Next(t time.Time) Slot {
	before := t.Add(-s.duration())
	if known(t) && !known(before) {
		before = time.Unix(minSecond, 0)
	}
	return s.later(s.of.Next(before))
}

// later is a slot of the other schedule as one of this.
func (s spread) later(slot Slot) Slot {
	if slot.IsZero() {
		return slot
	}
	return slotOf(slot.Start.UnixMilli()+s.by, slot.End.UnixMilli()+s.by)
}

// Location is the zone of the other schedule.
func (s spread) Location() *time.Location { return Location(s.of) }

// String is the text of the other schedule, " shifted " and the time.
func (s spread) String() string { return s.of.String() + " shifted " + tidy(s.duration()) }
