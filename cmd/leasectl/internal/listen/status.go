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
	Draining      bool         `json:"draining,omitzero"`
	Holder        *holder      `json:"holder,omitempty"`
	Won           *slot        `json:"won,omitempty"`
	Contending    *slot        `json:"contending,omitempty"`
	NextSlot      *nextSlot    `json:"nextSlot,omitempty"`
	Priority      int          `json:"priority"`
	Allocated     int          `json:"allocated"`
	Lost          int          `json:"lost"`
	Missed        int          `json:"missed"`
	Skipped       int          `json:"skipped"`
	Failed        int          `json:"failed"`
	GivenUp       int          `json:"givenUp"`
	DoneUntil     string       `json:"doneUntil,omitempty"`
	Due           string       `json:"due,omitempty"`
	OverdueMs     int64        `json:"overdueMs,omitempty"`
	Failures      int          `json:"failures"`
	LastError     string       `json:"lastError,omitempty"`
	Blocked       string       `json:"blocked,omitempty"`
	Paused        string       `json:"paused,omitempty"`
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

// statuses is the answer of /status about several workers.
type statuses struct {
	Version string   `json:"version"`
	Store   string   `json:"store"`
	Workers []status `json:"workers"`
}

// statusOf is what a worker does.
func (s *Server) statusOf(w Worker) status {
	now, report := w.Status(), health.Of(w)
	out := status{
		WorkerType: now.WorkerType, InstanceID: now.InstanceID, Version: workerlease.Version(), Store: s.o.Store, Schedule: w.Schedule.String(),
		State: report.State, Reason: report.Reason,
		Holds: now.Holding, Running: now.Running, Overrunning: now.Overrunning, Draining: now.Draining, Won: slotOf(now.Won), Contending: slotOf(now.Contending),
		Priority: now.Effective, Allocated: now.Allocated, Lost: now.Lost, Missed: now.Missed, Skipped: now.Skipped, Failed: now.Failed, GivenUp: now.GivenUp,
		Failures: now.Failures, Blocked: now.Blocked, Paused: now.Paused, Ineligible: now.Ineligible, Warning: now.Warning, RequestUnits: now.Charges.Total(),
	}
	if !now.DoneUntil.IsZero() {
		out.DoneUntil = store.Format(now.DoneUntil)
	}
	if !now.Due.IsZero() {
		out.Due, out.OverdueMs = store.Format(now.Due), now.Overdue().Milliseconds()
	}
	if now.LastError != nil {
		out.LastError = now.LastError.Error()
	}
	if now.Holding {
		l := now.Lease
		out.Lease = &lease{*slotOf(l.Slot), store.Format(l.Expiry), l.Token, l.Attempt}
	}
	if h, ok := w.Holder(); ok && report.Holder != "" {
		out.Holder = &holder{h.InstanceID, h.Group, h.Priority, h.Token, store.Format(h.From), store.Format(h.Until)}
	}
	if at := now.StoreTime; !at.IsZero() {
		out.StoreTime, out.UncertaintyMs, out.SampleAgeMs = store.Format(at), new(float64(now.Uncertainty.Microseconds())/1000), new(now.SampleAge.Milliseconds())
		next := w.Schedule.Next(at)
		out.NextSlot = &nextSlot{*slotOf(next), next.Start.Sub(at).Round(time.Millisecond).Milliseconds()}
	}
	return out
}

// status answers with what the worker does, or all of them.
func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	all := s.asked()
	var answer any
	if s.o.All == nil {
		answer = s.statusOf(all[0])
	} else {
		each := statuses{Version: workerlease.Version(), Store: s.o.Store, Workers: []status{}}
		for _, w := range all {
			each.Workers = append(each.Workers, s.statusOf(w))
		}
		answer = each
	}
	_ = json.NewEncoder(w).Encode(answer) // It is kept in memory.
}
