// Package health answers the probes of a service whose workers lease: whether its process is to be
// restarted, and whether it is ready.
//
//	http.Handle("GET /livez", health.Live(worker))
//	http.Handle("GET /readyz", health.Ready(worker))
//
// A worker that holds no lease is healthy: it waits for its turn. What is not is told in the body.
package health

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Worker is what is asked: a *workerlease.WorkerLease.
type Worker interface {
	Status() workerlease.Status
	Holder() (event.Holder, bool)
}

var _ Worker = (*workerlease.WorkerLease)(nil)

// State is how well a worker is. Larger ones are worse.
type State int

// The states.
const (
	// Healthy: the worker holds the lease, or knows who does, or who has claimed what comes next, or that the job of
	// the slot is done, or not due yet, or that the type has had no slot yet.
	Healthy State = iota
	// Degraded: a job is overdue, whoever holds the lease. Or the worker knows of no holder: nobody can lead, or one lease has ended
	// and the next one begins in a moment.
	Degraded
	// Unhealthy: it can't tell: it has stopped, is stuck or blocked, or the store doesn't answer; or its own code overruns,
	// so that it claims nothing.
	Unhealthy
)

var names = [...]string{"healthy", "degraded", "unhealthy"}

// String is "healthy", "degraded" or "unhealthy".
func (s State) String() string {
	if s < Healthy || s > Unhealthy {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return names[s]
}

// MarshalText is String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Report is what is said of one worker, in JSON.
type Report struct {
	WorkerType string `json:"workerType"`
	InstanceID string `json:"instanceId"`
	State      State  `json:"state"`
	// Reason is why it is in its state, in one line.
	Reason string `json:"reason"`
	// Holds says that this worker holds the lease, and Holder who does; empty if nobody is known to, as by one that is
	// Unhealthy and doesn't hold it itself: who did when it last looked may have lost it.
	Holds  bool   `json:"holds"`
	Holder string `json:"holder,omitzero"`
}

// Of judges a worker, as of its last step. It asks no store, and never blocks for long.
func Of(w Worker) Report {
	s := w.Status()
	r := Report{WorkerType: s.WorkerType, InstanceID: s.InstanceID, Holds: s.Holding}
	if h, ok := w.Holder(); ok {
		if r.Holder = h.InstanceID; h.Group != "" {
			r.Holder = h.Group
		}
	}
	switch {
	case !s.Healthy():
		r.State, r.Reason = Unhealthy, unhealthy(s)
		if !s.Holding {
			r.Holder = ""
		}
	case s.Overdue() > 0:
		r.State, r.Reason = Degraded, "nobody runs the job, which"
		if text := holds(s, r.Holder); text != "" {
			r.Reason = text + "; the job"
		}
		r.Reason += " is overdue since " + store.Format(s.Due) + kept(s)
	case holds(s, r.Holder) != "":
		r.Reason = holds(s, r.Holder)
	case s.StoreTime.Before(s.DoneUntil):
		r.Reason = "the job of the slot is done, which ends at " + store.Format(s.DoneUntil)
	case s.StoreTime.Before(s.Due) && s.Paused == "" && s.Ineligible == "":
		r.Reason = "nobody runs the job, which becomes overdue at " + store.Format(s.Due)
		if begins := s.Contending.Start; s.StoreTime.Before(begins) && begins.Before(s.Due) {
			r.Reason = "waits for its slot, which begins at " + store.Format(begins)
		}
	case !s.First.IsZero() && s.Paused == "" && s.Ineligible == "":
		r.Reason = "waits for the first slot, which begins at " + store.Format(s.First.Start)
	default:
		r.State, r.Reason = Degraded, "knows of no holder"+kept(s)
	}
	return r
}

// holds is what a worker holds, or who does, or what it has won; empty if it knows of none.
func holds(s workerlease.Status, holder string) string {
	switch {
	case s.Draining:
		return "is told to stop, and waits for the end of its code"
	case s.Holding:
		if !s.StoreTime.Before(s.Lease.Slot.End) {
			return "runs the job of the slot " + s.Lease.Slot.String() + ", which is over"
		}
		return "holds the slot " + s.Lease.Slot.String()
	case holder != "":
		return holder + " holds the lease"
	case !s.Won.IsZero():
		return "has won the slot " + s.Won.String()
	}
	return ""
}

// kept is what keeps a worker from claiming, after a reason.
func kept(s workerlease.Status) (text string) {
	if s.Paused != "" {
		text = ": " + s.Paused
	}
	if s.Ineligible != "" {
		text += ", and is not eligible: " + s.Ineligible
	}
	return text
}

// unhealthy is why a worker can't tell who holds, or claims nothing.
func unhealthy(s workerlease.Status) string {
	switch {
	case s.Stopped:
		return "has stopped"
	case s.Overrunning:
		return "its code has not returned, and its lease is over"
	case s.Blocked != "":
		return s.Blocked
	case s.StoreTime.IsZero() && s.LastError == nil:
		return "the store has not answered yet"
	case s.StoreTime.IsZero():
		return fmt.Sprintf("the store has not answered yet: %v", s.LastError)
	default:
		return fmt.Sprintf("the store has failed %d times in a row: %v", s.Failures, s.LastError)
	}
}

// Answer is the body of an answer. State is the worst of its workers.
type Answer struct {
	State   State    `json:"state"`
	Workers []Report `json:"workers"`
}

// Live answers liveness probes: 503 if a worker is stuck, or its code overruns its lease, which only a restart
// mends (see workerlease.Status.Alive), and 200 otherwise. A store that is down is no reason to restart.
func Live(workers ...Worker) http.Handler {
	return handler(workers, func(w Worker) bool { return w.Status().Alive() })
}

// Ready answers readiness probes: 503 if a worker is Unhealthy, and 200 otherwise, also for Degraded.
func Ready(workers ...Worker) http.Handler {
	return handler(workers, func(w Worker) bool { return Of(w).State != Unhealthy })
}

// handler answers 200 if all workers pass.
func handler(workers []Worker, passes func(Worker) bool) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		answer, code := Answer{Workers: []Report{}}, http.StatusOK
		for _, w := range workers {
			r := Of(w)
			answer.Workers, answer.State = append(answer.Workers, r), max(answer.State, r.State)
			if !passes(w) {
				code = http.StatusServiceUnavailable
			}
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Cache-Control", "no-store")
		rw.WriteHeader(code)
		_ = json.NewEncoder(rw).Encode(answer) // Nobody is left to tell.
	})
}
