package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
)

// JobTimes is the JSON form of the times of a job, as a worker has them. Its names don't change.
type JobTimes struct {
	StartWithinMs   int64  `json:"startWithinMs,omitempty"`
	Overrun         string `json:"overrun"`
	TimeoutMs       int64  `json:"timeoutMs,omitempty"`
	CatchUp         string `json:"catchUp"`
	CatchUpWithinMs int64  `json:"catchUpWithinMs,omitempty"`
	MaxAttempts     int    `json:"maxAttempts,omitempty"`
	RetriesOverMs   int64  `json:"retriesOverMs,omitempty"`
}

// JobJSON is nil for a worker without a job, or of a version that doesn't say.
func JobJSON(j *store.JobTimes) *JobTimes {
	if j == nil {
		return nil
	}
	return &JobTimes{j.StartWithin.Milliseconds(), j.Overrun, j.Timeout.Milliseconds(), j.CatchUp, j.CatchUpWithin.Milliseconds(), j.MaxAttempts, j.RetriesOver.Milliseconds()}
}

// JobText is the same in short; empty for a worker without a job.
func JobText(j *store.JobTimes) string {
	if j == nil {
		return ""
	}
	parts := []string{j.Overrun}
	if j.StartWithin > 0 {
		parts = []string{"start ≤" + brief(j.StartWithin), j.Overrun}
	}
	if j.Timeout > 0 {
		parts = append(parts, "timeout "+brief(j.Timeout))
	}
	if j.CatchUpWithin > 0 {
		parts = append(parts, "catch up "+j.CatchUp+" ≤"+brief(j.CatchUpWithin))
	}
	return strings.Join(parts, ", ")
}

// AttemptsText is until when a slot is tried again.
func AttemptsText(j *store.JobTimes) string {
	switch j.MaxAttempts {
	case 0:
		return "tried until the slot ends"
	case 1:
		return "tried once"
	}
	return fmt.Sprintf("%d attempts over %s or more", j.MaxAttempts, brief(j.RetriesOver))
}

// jobsOf are the different jobs of workers of one type, in words.
func jobsOf(there []store.Presence) (texts []string) {
	for _, p := range there {
		text := JobText(p.Job)
		if p.Job != nil {
			text += ", " + AttemptsText(p.Job)
		}
		if text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// WorksOf is what workers that are there do, if they say so and differ: each with one that says so.
func WorksOf(there []store.Presence) (works []string) {
	var seen []string
	for _, p := range there {
		if p.Work != "" && !slices.Contains(seen, p.Work) {
			seen = append(seen, p.Work)
			works = append(works, display.Line(p.Work)+" by "+display.Line(p.InstanceID))
		}
	}
	return works
}

// jobOf are the times of the job by the workers that are there; nil if none says.
func jobOf(there []store.Presence) *store.JobTimes {
	for _, p := range there {
		if p.Job != nil {
			return p.Job
		}
	}
	return nil
}

// compareJobs finds that the workers that are there have different times of the job.
func (t *typeStatus) compareJobs(there []store.Presence) {
	if works := WorksOf(there); len(works) > 1 {
		t.warn("commands differ: %s; give each a worker type of its own, unless one is an earlier version", strings.Join(works, " | "))
	}
	if texts := jobsOf(there); len(texts) > 1 {
		t.warn("jobs differ: %s", strings.Join(texts, " | "))
	}
}
