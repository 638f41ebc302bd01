package estimate

import (
	"math"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
)

// Report is the JSON form of an estimate. Its names don't change.
type Report struct {
	Store       string       `json:"store"`
	Consistency string       `json:"consistency"`
	Workers     int          `json:"workers"`
	Schedule    string       `json:"schedule"`
	FailoverMs  int64        `json:"failoverWithinMs,omitempty"`
	Parts       float64      `json:"partsPerSlot,omitempty"`
	SlotsPerDay float64      `json:"slotsPerDay"`
	LeadMs      int64        `json:"leadMs"`
	StepMs      int64        `json:"stepMs"`
	PerSlot     []SlotReport `json:"perSlot"`
	PerDay      []DayReport  `json:"perDay"`
	LeadUnits   float64      `json:"leadRequestUnitsPerSecond"`
	Trimming    TrimReport   `json:"trimming"`
	Assumptions []string     `json:"assumptions"`
}

// SlotReport is what a slot takes of one worker, of trimming, or of all.
type SlotReport struct {
	Who        string             `json:"who"`
	Workers    int                `json:"workers,omitempty"`
	Operations map[string]float64 `json:"operations"`
	Units      float64            `json:"requestUnits"`
}

// DayReport is a protocol's day.
type DayReport struct {
	Protocol string  `json:"protocol"`
	Requests float64 `json:"requests"`
	Units    float64 `json:"requestUnits"`
	Peak     float64 `json:"peakRequestUnitsPerSecond"`
}

// TrimReport is one trim.
type TrimReport struct {
	EverySlots   int     `json:"everySlots"`
	EveryRecords int     `json:"everyRecords"`
	Deleted      int     `json:"deleted"`
	Units        float64 `json:"requestUnits"`
}

// Report is the estimate for programs.
func (e Estimate) Report() Report {
	trimEvery := float64(e.Timing.TrimEvery)
	out := Report{
		Store: e.Store, Consistency: e.Consistency, Workers: e.Workers, Schedule: e.Timing.Options.Schedule.String(), SlotsPerDay: charges.Round(e.slotsPerDay),
		LeadMs: e.turns.Lead.Milliseconds(), StepMs: e.turns.Step.Milliseconds(), LeadUnits: charges.Round(e.overLead()),
		Trimming: TrimReport{int(max(1, math.Round(trimEvery/e.parts.n))), int(trimEvery), int(trimEvery), charges.Round(e.trim.Units)}, Assumptions: e.assumptions(),
	}
	if e.parts.several() {
		out.FailoverMs, out.Parts = e.Timing.Options.FailoverWithin.Milliseconds(), e.parts.n
	}
	for _, r := range e.rows {
		out.PerSlot = append(out.PerSlot, SlotReport{r.who, r.workers, r.each.named(), charges.Round(r.cost.Units)})
	}
	for _, d := range e.days {
		out.PerDay = append(out.PerDay, DayReport{d.protocol, math.Round(d.cost.Requests), charges.Round(d.cost.Units), charges.Round(d.peak)})
	}
	return out
}

// named are the operations that there are, by their names.
func (o operations) named() map[string]float64 {
	all := map[string]float64{"now": o.Now, "tail": o.Tail, "append": o.Append, "get": o.Get, "trim": o.Trim, "deleted": o.Deleted}
	for name, n := range all {
		if all[name] = math.Round(n*1000) / 1000; n == 0 {
			delete(all, name)
		}
	}
	return all
}
