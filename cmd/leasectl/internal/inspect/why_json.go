package inspect

import (
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/explain"
)

// Order is an order of an operator in JSON. Its names don't change.
type Order struct {
	Kind   store.OrderKind `json:"kind"`
	Target string          `json:"target,omitempty"`
	At     string          `json:"at"`
	Until  string          `json:"until"`
	By     string          `json:"by,omitempty"`
	Why    string          `json:"why,omitempty"`
}

func orderOf(o store.Order) Order {
	return Order{o.Kind, o.Target, jsonTime(o.At), jsonTime(o.Until), o.By, o.Why}
}

// Cause is why nobody had a slot, in JSON. Its names don't change.
type Cause struct {
	Reason  explain.Reason `json:"reason"`
	Text    string         `json:"text"`
	Seq     int64          `json:"seq,omitempty"`
	Workers []string       `json:"workers,omitempty"`
	Order   *Order         `json:"order,omitempty"`
}

// Verdict is what became of a worker, in JSON. Its names don't change.
type Verdict struct {
	InstanceID string         `json:"instanceId"`
	Group      string         `json:"group,omitempty"`
	Reason     explain.Reason `json:"reason"`
	Certain    bool           `json:"certain"`
	Text       string         `json:"text"`
	Detail     string         `json:"detail,omitempty"`
	Order      *Order         `json:"order,omitempty"`
	InRoster   bool           `json:"inRoster"`
	Priority   *int           `json:"priority,omitempty"`
	Effective  *int           `json:"effectivePriority,omitempty"`
	Since      string         `json:"since,omitempty"`
	Seen       string         `json:"seen,omitempty"`
}

// Answer is the JSON form of why. Its names don't change.
type Answer struct {
	StoreTime  string        `json:"storeTime"`
	Store      string        `json:"store"`
	WorkerType string        `json:"workerType"`
	At         string        `json:"at"`
	When       explain.When  `json:"when"`
	SlotStart  string        `json:"slotStart,omitempty"`
	SlotEnd    string        `json:"slotEnd,omitempty"`
	Holder     *Slot         `json:"holder,omitempty"`
	Terms      []Slot        `json:"terms"`
	Nobody     []Cause       `json:"nobody,omitempty"`
	Missed     int           `json:"missedSlots,omitempty"`
	MissedFrom string        `json:"missedFrom,omitempty"`
	MissedTo   string        `json:"missedUntil,omitempty"`
	Unread     bool          `json:"unread,omitempty"`
	Workers    []Verdict     `json:"workers"`
	Text       string        `json:"text"`
	Warning    string        `json:"warning,omitempty"`
	Units      *charges.JSON `json:"requestUnits,omitempty"`
}

func (a answer) json() any { return a.data() }

func (a answer) data() Answer {
	out := Answer{
		StoreTime: store.Format(a.at), Store: a.store, WorkerType: a.workerType, At: jsonTime(a.At), When: a.When,
		SlotStart: jsonTime(a.Slot.Start), SlotEnd: jsonTime(a.Slot.End), Terms: []Slot{}, Missed: a.GapSlots, MissedFrom: jsonTime(a.Gap.Start), MissedTo: jsonTime(a.Gap.End),
		Unread: a.Unread, Workers: []Verdict{}, Text: display.Line(strings.Join(a.whoHad(), " ")), Warning: a.warning, Units: charges.ToJSON(a.charges),
	}
	if a.Holder != nil {
		out.Holder = new(slotOf(*a.Holder, a.at))
	}
	for _, t := range a.Terms {
		out.Terms = append(out.Terms, slotOf(t, a.at))
	}
	for _, c := range a.Nobody {
		cause := Cause{Reason: c.Reason, Text: display.Line(a.cause(c)), Seq: c.Record.Seq, Workers: c.Workers}
		if c.Order != nil {
			cause.Order = new(orderOf(*c.Order))
		}
		out.Nobody = append(out.Nobody, cause)
	}
	for _, v := range a.Workers {
		row := Verdict{InstanceID: v.InstanceID, Group: v.Group, Reason: v.Reason, Certain: v.Certain, Text: display.Line(a.why(v)), Detail: v.Detail, InRoster: v.InRoster}
		if v.Order != nil {
			row.Order = new(orderOf(*v.Order))
		}
		if v.InRoster {
			row.Priority, row.Effective = new(v.Presence.Priority), new(v.Presence.Effective)
			row.Since, row.Seen = jsonTime(v.Presence.Since), jsonTime(v.Presence.Seen)
		}
		out.Workers = append(out.Workers, row)
	}
	return out
}
