package machine

import "github.com/slotlease/slotlease/workerlease/internal/timeline"

// KeptOut reports that orders keep a worker from claiming.
func KeptOut(m *Machine, s *State, now timeline.Interval) bool {
	until, _ := facts{m: m, s: s, at: Moment{Now: now}}.barred()
	return !until.IsZero()
}

// Heeds reports that a worker looks at the head because of a hint: now or, with a job, whenever it rests.
func Heeds(m *Machine, s *State) bool { return m.waitsForOthers(s) || m.TakesRests() && m.Once }
