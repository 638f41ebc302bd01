package inspect

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/explain"
	"github.com/slotlease/slotlease/workerlease/history"
)

// ordered says which orders kept workers from claiming.
func (a answer) ordered() (lines []string) {
	for _, o := range a.InForce {
		switch o.Kind {
		case store.OrderPause:
			lines = append(lines, fmt.Sprintf("The worker type %s %s.", a.isBy(o), a.order(o)))
		case store.OrderDrain:
			lines = append(lines, a.drained(o))
		case store.OrderRelease, store.OrderPrefer, store.OrderTrigger: // These keep nobody from claiming.
		}
	}
	return lines
}

// asked says who asked the holder of a term to release it.
func (a answer) asked(t history.Entry) (text string) {
	for _, o := range a.Asked {
		if o.Target == t.Record.Claim {
			text += fmt.Sprintf(" %s asked for its release at %s", cmp.Or(o.By, "An operator"), a.second(o.At))
			text = strings.TrimSuffix(text+": "+o.Why, ": ") + "."
		}
	}
	return text
}

// isBy is the verb for what an order says: it may be over although the slot isn't.
func (a answer) isBy(o store.Order) string {
	if a.When == explain.Past || !o.Until.After(a.at) {
		return "was"
	}
	return "is"
}

// drained says who drained a host.
func (a answer) drained(o store.Order) string {
	return fmt.Sprintf("Host %s %s drained%s.", o.Target, a.isBy(o), a.given(o))
}

// order is an order of an operator in words.
func (a answer) order(o store.Order) (text string) {
	switch o.Kind {
	case store.OrderPause:
		text = "paused"
	case store.OrderPrefer:
		text = "told to prefer " + o.Target
	case store.OrderDrain:
		text = "told to drain host " + o.Target
	case store.OrderRelease:
		text = "told to release"
	case store.OrderTrigger:
		text = "asked for"
	default:
		text = string(o.Kind)
	}
	return text + a.given(o)
}

// given is who gave an order, when, until when and why.
func (a answer) given(o store.Order) (text string) {
	if o.By != "" {
		text = " by " + o.By
	}
	text += fmt.Sprintf(" at %s, until %s", a.second(o.At), a.second(o.Until))
	if o.Why != "" {
		text += ": " + o.Why
	}
	return text
}
