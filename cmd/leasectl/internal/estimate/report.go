package estimate

import (
	"math"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
)

// Report is the JSON form of an estimate. Its names don't change.
type Report struct {
	Store       string       `json:"store"`
	Consistency string       `json:"consistency,omitempty"`
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
	Kept        *Kept        `json:"kept,omitempty"`
	Assumptions []string     `json:"assumptions"`
}

// SlotReport is what a slot takes of one worker, of trimming, or of all.
type SlotReport struct {
	Who        string             `json:"who"`
	Workers    int                `json:"workers,omitempty"`
	Operations map[string]float64 `json:"operations"`
	Units      float64            `json:"requestUnits"`
	Requests   map[string]float64 `json:"requests,omitempty"`
}

// DayReport is a protocol's day.
type DayReport struct {
	Protocol string             `json:"protocol"`
	Requests float64            `json:"requests"`
	Units    float64            `json:"requestUnits"`
	Peak     float64            `json:"peakRequestUnitsPerSecond"`
	Kinds    map[string]float64 `json:"requestsByKind,omitempty"`
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
		Trimming: TrimReport{int(max(1, math.Round(trimEvery/e.parts.n))), int(trimEvery), int(trimEvery), charges.Round(e.trim[inUnits])}, Assumptions: e.assumptions(),
	}
	if e.parts.several() {
		out.FailoverMs, out.Parts = e.Timing.Options.FailoverWithin.Milliseconds(), e.parts.n
	}
	for _, r := range e.rows {
		out.PerSlot = append(out.PerSlot, SlotReport{r.who, r.workers, named(opNames, r.each[:]), charges.Round(r.cost[inUnits]), e.kind.counted(r.cost)})
	}
	for _, d := range e.days {
		out.PerDay = append(out.PerDay, DayReport{d.protocol, math.Round(d.cost[inRequests]), charges.Round(d.cost[inUnits]), charges.Round(d.peak), e.kind.counted(d.cost)})
	}
	if e.kind.requests != nil {
		out.Kept = &e.kept
	}
	return out
}

// counted are the requests of a cost by their kinds; nil if there are none.
func (k kind) counted(c cost) map[string]float64 {
	if k.requests == nil {
		return nil
	}
	return named(k.requests, c[inPuts:])
}

// named are the figures that aren't zero, by their names.
func named(names []string, figures []float64) map[string]float64 {
	all := map[string]float64{}
	for i, name := range names {
		if n := math.Round(figures[i]*1000) / 1000; figures[i] != 0 {
			all[name] = n
		}
	}
	return all
}
