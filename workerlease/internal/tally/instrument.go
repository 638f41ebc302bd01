package tally

import (
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Kind is the kind of an instrument.
type Kind int

// The kinds.
const (
	Counter Kind = iota
	Gauge
	Histogram
)

// String is "counter", "gauge" or "histogram".
func (k Kind) String() string { return [...]string{"counter", "gauge", "histogram"}[k] }

// Instrument is one measure, for each worker type.
type Instrument struct {
	// Name is in the form of OpenTelemetry, without the prefix.
	Name string
	Kind Kind
	// Unit is in the form of OpenTelemetry: s, or {what is counted}.
	Unit string
	// Label is "reason" or "operation", and Values are all that it may have; empty if there is none.
	Label  string
	Values []string
	Help   string
	// Bounds are those of the buckets of a histogram.
	Bounds []float64

	number int
}

// Prefix begins the name of each instrument.
const Prefix = "slotlease"

// WorkerType is the label that all instruments have.
const WorkerType = "worker_type"

// Other is the value of a label that stands for all that have none of their own. No worker type
// can have that name.
const Other = "_other"

// FullName is the name in OpenTelemetry's form.
func (i *Instrument) FullName() string { return Prefix + "." + i.Name }

// PrometheusName is the name in Prometheus' form: what OpenTelemetry's exporters make of FullName and Unit.
func (i *Instrument) PrometheusName() string {
	name := strings.ReplaceAll(i.FullName(), ".", "_")
	if i.Unit == "s" {
		name += "_seconds"
	}
	if i.Kind == Counter {
		name += "_total"
	}
	return name
}

// all are the instruments, in the order in which they are declared.
var all []*Instrument

// Instruments are all that there are.
func Instruments() []*Instrument { return slices.Clone(all) }

func declare(i Instrument) *Instrument {
	i.number = len(all)
	all = append(all, &i)
	return &i
}

func counter(name, unit, help string) *Instrument {
	return declare(Instrument{Name: name, Kind: Counter, Unit: unit, Help: help})
}

func counterBy(label string, values []string, name, unit, help string) *Instrument {
	return declare(Instrument{Name: name, Kind: Counter, Unit: unit, Help: help, Label: label, Values: append(values, Other)})
}

func gauge(name, unit, help string) *Instrument {
	return declare(Instrument{Name: name, Kind: Gauge, Unit: unit, Help: help})
}

func histogram(name, help string, bounds ...float64) *Instrument {
	return declare(Instrument{Name: name, Kind: Histogram, Unit: "s", Help: help, Bounds: bounds})
}

// value is a text as the value of a label.
func value[T ~string](text T) string { return strings.ReplaceAll(string(text), " ", "_") }

func values[T ~string](texts ...T) (out []string) {
	for _, text := range texts {
		out = append(out, value(text))
	}
	return out
}

// operations are those of [event.Operated] and [event.Charged].
var operations = values("append", "tail", "get", "now", "trim", "get for trim", "sighting", "roster")

// failures say how a task failed: it returned an error, or panicked, or its code called Lease.Failed.
const (
	returned = "error"
	panicked = "panic"
	reported = "reported"
	died     = "worker_died"
)

// causes are short names of why an attempt failed that did not end by itself.
var causes = map[store.Cause]string{
	store.TimedOut: "timed_out", store.SlotEnded: "slot_ended", store.LeaseLost: "lease_lost", store.Ordered: "ordered",
	store.Stopped: "stopped", store.WorkerDied: died,
}

// verdicts are short names of what a clock jump came to.
var verdicts = map[event.ClockVerdict]string{
	event.ClockInQuestion: "in_question",
	event.AnswerDropped:   "answer_dropped",
	event.JumpConfirmed:   "confirmed",
}
