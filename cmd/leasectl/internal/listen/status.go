package listen

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/health"
)

// StatusHelp documents the answer of /status.
const StatusHelp = `  workerType, instanceId
  version       of leasectl
  store         without secrets
  schedule
  state         healthy, degraded or unhealthy, as for /readyz, and
  reason        why, for people
  storeTime     left out until the store has answered, as are uncertaintyMs and sampleAgeMs
  holds         whether this worker has the lease, and then
  lease           slotStart, slotEnd, expiresAt, token, and attempt of a job
  running       the command runs; overrunning: although its lease is over
  holder        who has the lease, as far as is known: instanceId, group, priority, token,
                from, until
  won           the slot that is won and has not begun: slotStart, slotEnd
  contending    the slot that it tries to win
  nextSlot      the one that begins next, by store time: slotStart, slotEnd, inMs
  priority      by which it claims
  allocated, lost, missed   count slots
  failures      of the store in a row; lastError: the newest, if there ever was one
  blocked, ineligible, warning   left out where there is nothing to say
  requestUnits  what the store has billed`

// status is the answer of /status.
type status struct {
	WorkerType    string       `json:"workerType"`
	InstanceID    string       `json:"instanceId"`
	Version       string       `json:"version"`
	Store         string       `json:"store"`
	Schedule      string       `json:"schedule"`
	State         health.State `json:"state"`
	Reason        string       `json:"reason"`
	StoreTime     string       `json:"storeTime,omitempty"`
	UncertaintyMs *float64     `json:"uncertaintyMs,omitempty"`
	SampleAgeMs   *int64       `json:"sampleAgeMs,omitempty"`
	Holds         bool         `json:"holds"`
	Lease         *lease       `json:"lease,omitempty"`
	Running       bool         `json:"running"`
	Overrunning   bool         `json:"overrunning"`
	Holder        *holder      `json:"holder,omitempty"`
	Won           *slot        `json:"won,omitempty"`
	Contending    *slot        `json:"contending,omitempty"`
	NextSlot      *nextSlot    `json:"nextSlot,omitempty"`
	Priority      int          `json:"priority"`
	Allocated     int          `json:"allocated"`
	Lost          int          `json:"lost"`
	Missed        int          `json:"missed"`
	Failures      int          `json:"failures"`
	LastError     string       `json:"lastError,omitempty"`
	Blocked       string       `json:"blocked,omitempty"`
	Ineligible    string       `json:"ineligible,omitempty"`
	Warning       string       `json:"warning,omitempty"`
	RequestUnits  float64      `json:"requestUnits,omitempty"`
}

type slot struct {
	Start string `json:"slotStart"`
	End   string `json:"slotEnd"`
}

type lease struct {
	slot

	ExpiresAt string `json:"expiresAt"`
	Token     int64  `json:"token"`
	Attempt   int    `json:"attempt,omitempty"`
}

type nextSlot struct {
	slot

	InMs int64 `json:"inMs"`
}

type holder struct {
	InstanceID string `json:"instanceId"`
	Group      string `json:"group"`
	Priority   int    `json:"priority"`
	Token      int64  `json:"token"`
	From       string `json:"from"`
	Until      string `json:"until"`
}

// slotOf is a slot, nil if there is none.
func slotOf(s slots.Slot) *slot {
	if s.IsZero() {
		return nil
	}
	return &slot{store.Format(s.Start), store.Format(s.End)}
}

// statusOf is what a worker does.
func (s *Server) statusOf(w health.Worker) status {
	now, report := w.Status(), health.Of(w)
	out := status{
		WorkerType: now.WorkerType, InstanceID: now.InstanceID, Version: workerlease.Version(), Store: s.o.Store, Schedule: s.o.Schedule.String(),
		State: report.State, Reason: report.Reason,
		Holds: now.Holding, Running: now.Running, Overrunning: now.Overrunning, Won: slotOf(now.Won), Contending: slotOf(now.Contending),
		Priority: now.Effective, Allocated: now.Allocated, Lost: now.Lost, Missed: now.Missed,
		Failures: now.Failures, Blocked: now.Blocked, Ineligible: now.Ineligible, Warning: now.Warning, RequestUnits: now.Charges.Total(),
	}
	if now.LastError != nil {
		out.LastError = now.LastError.Error()
	}
	if now.Holding {
		l := now.Lease
		out.Lease = &lease{*slotOf(l.Slot), store.Format(l.Expiry), l.Token, l.Attempt}
	}
	if h, ok := w.Holder(); ok {
		out.Holder = &holder{h.InstanceID, h.Group, h.Priority, h.Token, store.Format(h.From), store.Format(h.Until)}
	}
	if at := now.StoreTime; !at.IsZero() {
		out.StoreTime, out.UncertaintyMs, out.SampleAgeMs = store.Format(at), new(float64(now.Uncertainty.Microseconds())/1000), new(now.SampleAge.Milliseconds())
		next := s.o.Schedule.Next(at)
		out.NextSlot = &nextSlot{*slotOf(next), next.Start.Sub(at).Round(time.Millisecond).Milliseconds()}
	}
	return out
}

// status answers with what the worker does.
func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(s.statusOf(s.asked())) // It is kept in memory.
}
