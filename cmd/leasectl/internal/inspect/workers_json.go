package inspect

import (
	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/store"
)

// Worker is a row of the JSON form. Its names don't change.
type Worker struct {
	WorkerType     string            `json:"workerType"`
	InstanceID     string            `json:"instanceId"`
	Group          string            `json:"group,omitempty"`
	State          string            `json:"state"`
	Holds          bool              `json:"holds"`
	Present        bool              `json:"present"`
	Eligible       bool              `json:"eligible"`
	Ineligible     string            `json:"ineligible,omitempty"`
	Score          *float64          `json:"score,omitempty"`
	Priority       int               `json:"priority"`
	Effective      int               `json:"effectivePriority"`
	Why            string            `json:"why,omitempty"`
	Missed         string            `json:"missed,omitempty"`
	Failures       int               `json:"failures,omitempty"`
	StepsBackUntil string            `json:"stepsBackUntil,omitempty"`
	OffsetMs       float64           `json:"offsetMs"`
	UncertaintyMs  float64           `json:"uncertaintyMs"`
	Host           string            `json:"host,omitempty"`
	PID            int               `json:"pid,omitempty"`
	Version        string            `json:"version,omitempty"`
	Schedule       string            `json:"schedule,omitempty"`
	Job            *JobTimes         `json:"job,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Since          string            `json:"since,omitempty"`
	Seen           string            `json:"seen,omitempty"`
	Next           string            `json:"next,omitempty"`
}

// Absent is a holder that isn't in the roster. Its names don't change.
type Absent struct {
	WorkerType string `json:"workerType"`
	InstanceID string `json:"instanceId"`
	Group      string `json:"group,omitempty"`
}

// Crew is the JSON form of inspect workers. Its names don't change.
type Crew struct {
	StoreTime string        `json:"storeTime"`
	Store     string        `json:"store"`
	Workers   []Worker      `json:"workers"`
	Absent    []Absent      `json:"absentHolders,omitempty"`
	Warning   string        `json:"warning,omitempty"`
	Units     *charges.JSON `json:"requestUnits,omitempty"`
}

func (c crew) json() any { return c.data() }

func (c crew) data() Crew {
	out := Crew{StoreTime: store.Format(c.at), Store: c.store, Workers: []Worker{}, Warning: c.warning, Units: charges.ToJSON(c.charges)}
	for _, each := range c.workers {
		out.Workers = append(out.Workers, Worker{
			WorkerType: each.WorkerType, InstanceID: each.InstanceID, Group: each.Group, State: string(each.Standing), Holds: each.Holds, Present: each.Present,
			Eligible: each.Ineligible == "", Ineligible: each.Ineligible, Score: each.Score, Priority: each.Priority, Effective: each.Effective, Why: each.Why,
			Missed: each.Missed, Failures: each.Failures, StepsBackUntil: jsonTime(each.StepsBackUntil),
			OffsetMs: float64(each.Offset.Microseconds()) / 1000, UncertaintyMs: float64(each.Uncertainty.Microseconds()) / 1000,
			Host: each.Host, PID: each.PID, Version: each.Version, Schedule: each.Schedule, Job: JobJSON(each.Job), Labels: each.Labels,
			Since: jsonTime(each.Since), Seen: jsonTime(each.Seen), Next: jsonTime(each.Next),
		})
	}
	for _, r := range c.absent {
		out.Absent = append(out.Absent, Absent{r.WorkerType, r.InstanceID, r.Group})
	}
	return out
}
