package workerlease

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/self"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// attendee is a worker's part in the roster of its client.
type attendee struct {
	number int
	id     string
	left   chan struct{} // closed when its presence has been removed
	// schedule is its text: user code, which the goroutine that all workers share never calls.
	schedule string
	job      *store.JobTimes

	// Only of the roster's goroutine.
	since    time.Time            // when the worker began
	recalled bool                 // who was there before is known
	before   []string             // IDs of presences to remove when the own one is stored
	suspects map[string]time.Time // when those were seen first, by ID, that may be of a process whose place it takes
	newest   store.Presence       // of those whose place it takes
	told     store.Presence       // which the worker has been told of, with the most failures of those
	waits    bool                 // with its own one, until the worker has taken in what these say
	stored   store.Presence
	at       time.Duration // the local reading then
	gone     bool          // it isn't there any more
	rank     machine.Rank  // as the worker knows it
	why      string
	asked    *asked // the call of its policy that has not returned in time; nil: there is none

	// Guarded by the worker's mutex.
	phase   store.Phase
	trouble machine.Trouble
	missed  string     // why it did not get its newest slot
	about   slots.Slot // that, and those before that nobody had for the same reason
	lost    bool       // since another has it
	score   *float64
}

func newAttendee(client string, number int, schedule string) *attendee {
	return &attendee{
		number: number, id: fmt.Sprintf("%s-%s.%d", process(), client, number), left: make(chan struct{}), schedule: schedule, phase: store.PhaseCandidate,
	}
}

// process names this process. IDs of workers begin with it.
var process = sync.OnceValue(func() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
})

// newRosterName is a name for a client.
func (c *Client) newRosterName() string {
	var draw [8]byte
	if _, err := io.ReadFull(c.rand, draw[:]); err != nil {
		panic(fmt.Sprintf("workerlease: ClientOptions.Rand failed: %v", err))
	}
	return hex.EncodeToString(draw[:])
}

// sameProcess reports that two workers, by their IDs, are of one process.
func sameProcess(a, b string) bool {
	x, _, _ := strings.Cut(a, "-")
	y, _, _ := strings.Cut(b, "-")
	return x == y
}

// publish makes what the roster is to say of the worker visible to its goroutine. The caller holds the
// worker's mutex.
func (a *attendee) publish(m *machine.Machine, s *machine.State, holding bool) {
	a.trouble = s.Trouble
	switch {
	case holding:
		a.phase = store.PhaseHolder
		if s.Trouble.Began.Before(s.Hold.Held.Slot.Start) {
			a.trouble = machine.Trouble{} // Its code works since a slot at least.
		}
	case m.StepsBack(s):
		a.phase = store.PhaseStepping
	default:
		a.phase = store.PhaseCandidate
	}
}

// noteMissed keeps why the worker did not get a slot, or several in a row, and whether another has it; empty if it
// got the slot.
func (w *WorkerLease) noteMissed(about slots.Slot, why string, lost bool) {
	if w.attendee == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attendee.about, w.attendee.missed, w.attendee.lost = about, why, lost
}

// noteScore keeps a health score.
func (w *WorkerLease) noteScore(score float64) {
	if w.attendee == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attendee.score = &score
}

// presenceEvery is how often the worker's presence is renewed.
func (w *WorkerLease) presenceEvery() time.Duration { return presenceInterval(w.machine.Shortest) }

// presence is what the worker says of itself at a time.
func (w *WorkerLease) presence(now timeline.Interval) store.Presence {
	c, o, a := w.client, &w.options, w.attendee
	p := store.Presence{
		WorkerType: o.WorkerType, ID: a.id, Client: c.roster.client, InstanceID: o.InstanceID, Group: o.Group,
		Host: w.machine.Worker.Host, PID: os.Getpid(), Process: self.Process(), Version: w.machine.Worker.Version, Schedule: a.schedule, Work: o.Work, Job: a.job,
		Labels: maps.Clone(o.Labels), Priority: o.Priority, Effective: o.Priority, Spreads: o.TieBreak == priority.Spread,
	}
	w.mu.Lock()
	p.Phase, p.Missed, p.Score = a.phase, shortened(a.missed), a.score
	if p.Missed != "" {
		p.MissedFrom, p.MissedUntil = a.about.Start, a.about.End
	}
	p.Failures, p.FailedIn, p.StepsBackUntil = min(a.trouble.Slots, store.MaxFailures), a.trouble.Slot, a.trouble.Until
	if p.Phase == store.PhaseCandidate && a.lost && o.FailoverWithin > 0 {
		p.Phase = store.PhaseStandby
	}
	if err := w.progress.ineligible; err != nil {
		p.Ineligible = shortened(err.Error())
	}
	w.mu.Unlock()
	if a.rank.Known {
		p.Effective, p.Why = a.rank.Priority, a.why
	}
	if stepsBack(&p, now.Mid()) {
		p.Effective, p.Why = priority.Lowest, fmt.Sprintf("it failed in %d slots in a row", p.Failures)
	}
	if now.Known() {
		if a.since.IsZero() {
			a.since = now.Mid()
		}
		p.Since, p.Seen, p.Next = a.since, now.Mid(), now.Mid().Add(w.presenceEvery()+presenceEvery)
		p.Offset, p.Uncertainty = c.clock.Now().Sub(now.Mid()), now.Uncertainty()
	}
	return p.Truncated()
}

// stepsBack reports that a worker lets others go first at a time.
func stepsBack(p *store.Presence, now time.Time) bool {
	return p.Phase == store.PhaseStepping || p.StepsBackUntil.After(now)
}

// shortened is as much of a text as a presence has room for.
func shortened(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
	return strings.ToValidUTF8(text[:min(len(text), store.MaxReason)], "")
}

// says reports that two presences of a worker say the same, besides when and how it measured the time.
func says(p, q store.Presence) bool {
	score := func(p store.Presence) float64 {
		if p.Score == nil {
			return -1
		}
		return *p.Score
	}
	about := func(text string) string { return figures.ReplaceAllLiteralString(text, "") }
	return p.Phase == q.Phase && p.Effective == q.Effective && p.Why == q.Why && about(p.Ineligible) == about(q.Ineligible) && score(p) == score(q) &&
		p.Missed == q.Missed && p.Failures == q.Failures && p.FailedIn.Equal(q.FailedIn) && p.StepsBackUntil.Equal(q.StepsBackUntil)
}

// IsPresent reports that a worker, by its presence, has renewed that as announced, at a store time. What can't be is no
// presence.
func IsPresent(p store.Presence, now time.Time) bool {
	return p.Phase != store.PhaseStopped && !now.After(p.Next.Add(PresenceGrace)) && !isOver(p, now) && p.Next.Sub(p.Seen) <= 2*mostPresence
}

// isOver reports that a presence is not to be remembered any more.
func isOver(p store.Presence, now time.Time) bool { return now.Sub(p.Seen).Abs() >= presenceExpiry }

// recall finds out, for workers that are new, whose place they take: of those with their names on this host, and of a
// process that had the number of this one there, once they are gone. Who renews its presence lives, whatever its number. The trouble
// of the newest of them is theirs. Presences that nobody needs any more are removed later.
func (c *Client) recall(workers []*WorkerLease, all []store.Presence, now time.Time) {
	byType := map[string][]store.Presence{}
	for _, p := range all {
		byType[p.WorkerType] = append(byType[p.WorkerType], p)
	}
	for _, w := range workers {
		a := w.attendee
		if a.recalled {
			continue
		}
		first := a.suspects == nil
		if a.recalled = true; first {
			a.suspects = map[string]time.Time{}
		}
		for _, p := range byType[w.options.WorkerType] {
			seen, suspect := a.suspects[p.ID]
			switch {
			case slices.Contains(a.before, p.ID), !isOver(p, now) && !w.maySucceed(p):
			case isOver(p, now):
				a.before = append(a.before, p.ID)
			case p.Phase == store.PhaseStopped, !IsPresent(p, now), sameProcess(p.ID, a.id), self.IsGone(p.PID, p.Process):
				a.before = append(a.before, p.ID)
				if p.Seen.After(a.newest.Seen) {
					a.newest = p
				}
			case !suspect:
				a.suspects[p.ID], a.recalled = p.Seen, false
			case !p.Seen.After(seen):
				a.recalled = false // It may yet be renewed.
			}
		}
		a.waits = first && len(a.before) > 0
		newest := a.newest
		if newest.ID == a.told.ID {
			continue
		}
		// One that is found later has counted the failures of those before it, if it lived for long enough to know of them.
		most := max(newest.Failures, a.told.Failures)
		newest.Failures = most - a.told.Failures
		a.told = store.Presence{ID: newest.ID, Failures: most}
		died := newest.Phase != store.PhaseStopped
		if died || newest.Failures > 0 {
			w.post(arrival{event: machine.Remembered{
				Trouble: machine.Trouble{Slots: newest.Failures, Slot: newest.FailedIn, Until: newest.StepsBackUntil},
				Died:    died, Held: newest.Phase == store.PhaseHolder, Since: newest.Since, Seen: newest.Seen,
			}})
		}
	}
}

// miss finds out whose presence is gone: the store has lost it, or a worker with the same names has removed it.
func miss(workers []*WorkerLease, all []store.Presence) {
	there := map[string]bool{}
	for _, p := range all {
		there[p.ID] = true
	}
	for _, w := range workers {
		w.attendee.gone = w.attendee.stored.ID != "" && !there[w.attendee.id]
	}
}

// maySucceed reports that the worker takes the place of one in the roster, if that is gone.
func (w *WorkerLease) maySucceed(p store.Presence) bool {
	if p.Client == w.client.roster.client || p.Host != w.machine.Worker.Host {
		return false // Workers of one name may live side by side, on several hosts above all.
	}
	if sameProcess(p.ID, w.attendee.id) {
		return p.InstanceID == w.options.InstanceID
	}
	return p.PID == w.machine.Worker.PID || p.InstanceID == w.options.InstanceID
}
