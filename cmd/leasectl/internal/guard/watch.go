package guard

import "time"

// verdict is the action that is due for the command now.
type verdict int

const (
	letRun verdict = iota
	terminate
	kill
)

// watch decides when a command gets SIGTERM and when it is killed. It is
// pure; all instants are of [Boottime].
type watch struct {
	deadline time.Duration
	// notice is how long before the deadline SIGTERM comes, and grace how long
	// SIGKILL comes after it at most.
	notice, grace time.Duration
	// stopping is set when SIGTERM is due; killAt counts from then on.
	stopping bool
	killAt   time.Duration
	reason   Reason
}

// at returns what is due at now, and enters the grace if it starts.
func (w *watch) at(now time.Duration) verdict {
	if !w.stopping && now >= w.deadline-w.notice {
		w.stopping, w.killAt, w.reason = true, w.deadline, DeadlineReached
	}
	switch {
	case w.stopping && now >= w.killAt:
		return kill
	case w.stopping:
		return terminate
	}
	return letRun
}

// next returns the instant at which at has something new to say.
func (w *watch) next() time.Duration {
	if w.stopping {
		return w.killAt
	}
	return w.deadline - w.notice
}

// stop starts the grace, at most until by. A zero by, or one that is later than
// the deadline, leaves the deadline as it is.
func (w *watch) stop(now, by time.Duration) {
	if by != 0 {
		w.deadline = min(w.deadline, by)
	}
	if !w.stopping {
		w.stopping, w.killAt, w.reason = true, now+w.grace, Stopped
	}
	w.killAt = min(w.killAt, w.deadline)
}

// extend moves the deadline to a later instant, and sets how long before it
// SIGTERM comes. It does nothing if the instant isn't later, or once the deadline
// has passed or SIGTERM is due: a job that was told to end ends.
func (w *watch) extend(now, to, notice time.Duration) {
	if w.at(now) == letRun && to > w.deadline {
		w.deadline, w.notice = to, notice
	}
}
