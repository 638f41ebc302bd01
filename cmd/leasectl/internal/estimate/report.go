package estimate

import (
	"maps"
	"math"
	"slices"

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
	Kept        *KeptReport  `json:"kept,omitempty"`
	Prices      *PriceReport `json:"prices,omitempty"`
	Assumptions []string     `json:"assumptions"`
}

// SlotReport is what a slot takes of one worker, of trimming, or of all.
type SlotReport struct {
	Who        string             `json:"who"`
	Workers    int                `json:"workers,omitempty"`
	Operations map[string]float64 `json:"operations"`
	Units      float64            `json:"requestUnits"`
	Requests   map[string]float64 `json:"requests,omitempty"`
	Dollars    float64            `json:"usd,omitempty"`
}

// DayReport is a protocol's day.
type DayReport struct {
	Protocol string  `json:"protocol"`
	Requests float64 `json:"requests"`
	Units    float64 `json:"requestUnits"`
	Peak     float64 `json:"peakRequestUnitsPerSecond"`

	Kinds   map[string]float64 `json:"requestsByKind,omitempty"`
	Dollars float64            `json:"usd,omitempty"`
	Monthly float64            `json:"usdPerMonth,omitempty"`
}

// TrimReport is one trim.
type TrimReport struct {
	EverySlots   int     `json:"everySlots"`
	EveryRecords int     `json:"everyRecords"`
	Deleted      int     `json:"deleted"`
	Units        float64 `json:"requestUnits"`
}

// KeptReport is what a store of objects keeps.
type KeptReport struct {
	Records    float64 `json:"records"`
	AtMost     float64 `json:"recordsAtMost"`
	Presences  float64 `json:"presences"`
	Bytes      float64 `json:"bytes"`
	DollarsFor float64 `json:"usdPerMonth,omitempty"`
}

// PriceReport are the prices of requests.
type PriceReport struct {
	Region   string             `json:"region"`
	Date     string             `json:"date"`
	Source   string             `json:"source"`
	Basis    string             `json:"basis,omitempty"`
	Per      float64            `json:"perRequests"`
	Dollars  map[string]float64 `json:"usd"`
	Gigabyte float64            `json:"usdPerGBMonth"`
	Changed  []string           `json:"changed,omitempty"`
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
		out.PerSlot = append(out.PerSlot, SlotReport{
			Who: r.who, Workers: r.workers, Operations: r.each.named(), Units: charges.Round(r.cost.Units),
			Requests: e.tariff.named(r.cost.Kinds), Dollars: cents(e.tariff.bill(r.cost.Kinds)),
		})
	}
	for _, d := range e.days {
		usd := e.tariff.bill(d.cost.Kinds)
		out.PerDay = append(out.PerDay, DayReport{
			Protocol: d.protocol, Requests: math.Round(d.cost.Requests), Units: charges.Round(d.cost.Units), Peak: charges.Round(d.peak),
			Kinds: e.tariff.named(d.cost.Kinds), Dollars: cents(usd), Monthly: cents(usd * month),
		})
	}
	if e.tariff.kinds != nil {
		out.Kept = &KeptReport{e.kept.records, e.kept.most(), e.kept.presences, math.Round(e.kept.bytes()), cents(e.storage())}
	}
	if t := e.tariff; t.priced() {
		out.Prices = &PriceReport{
			Region: t.region, Date: t.date, Source: t.source, Basis: t.rests(e.Options.Prices), Per: t.per, Dollars: map[string]float64{}, Gigabyte: t.gigabyte,
			Changed: slices.Sorted(maps.Keys(e.Options.Prices)),
		}
		for i, kind := range t.kinds {
			out.Prices.Dollars[kind] = t.dollars[i]
		}
	}
	return out
}

// cents are dollars without the noise of floating point.
func cents(dollars float64) float64 { return math.Round(dollars*1e9) / 1e9 }

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
