package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// OrderKind says what an operator asks of workers.
type OrderKind string

// The kinds that this version obeys. Orders of other kinds are repeated, and change nothing.
const (
	// OrderPause: no worker claims a slot, or the rest of one.
	OrderPause OrderKind = "pause"
	// OrderPrefer: the worker with the InstanceID Target goes first.
	OrderPrefer OrderKind = "prefer"
	// OrderRelease: the holder of the term whose claim is Target gives up the rest of it.
	OrderRelease OrderKind = "release"
	// OrderDrain: no worker of the host Target claims a slot, or the rest of one.
	OrderDrain OrderKind = "drain"
	// OrderTrigger: a worker with a job runs it once more, beside its slots. The order stands until a record
	// says that this is done, or given up. There may be several, told apart by At.
	OrderTrigger OrderKind = "trigger"
)

// Triggered is the Schedule of the records of a run that a trigger asked for: their slot is none of a schedule, but the
// time in which the run may begin, from the order's At to its Until.
const Triggered = "triggered"

// Triggered reports that the record is one of a run that a trigger asked for.
func (r Record) Triggered() bool { return r.Schedule == Triggered }

// Triggers reports that orders have a trigger that was given at a time, in force or not.
func Triggers(orders string, at time.Time) bool {
	all, err := ParseOrders(orders)
	return err == nil && slices.ContainsFunc(all, func(o Order) bool { return o.Kind == OrderTrigger && o.At.Equal(at) })
}

// WithoutTrigger is orders without the trigger that was given at a time.
func WithoutTrigger(orders string, at time.Time) string {
	all, err := ParseOrders(orders)
	if err != nil {
		return orders
	}
	kept, err := FormatOrders(slices.DeleteFunc(all, func(o Order) bool { return o.Kind == OrderTrigger && o.At.Equal(at) }))
	if err != nil {
		return orders // It was written before.
	}
	return kept
}

const (
	// MaxOrders is the largest Record.Orders, in bytes.
	MaxOrders = 2 << 10
	// MaxOrderCount is how many orders a record has at most.
	MaxOrderCount = 8
	// MaxOrderText bounds Target, By and Why of an order, in bytes.
	MaxOrderText = 256
	// MaxOrderKind bounds the kind of an order, in bytes.
	MaxOrderKind = 32
)

// Order is what an operator asks of the workers of a type, up to a time. It gives no right
// and takes none away: workers that know orders obey them, and older ones don't.
type Order struct {
	Kind OrderKind
	// Target is the InstanceID, claim or host that the order is about. For a pause it is empty, or says which move gave it:
	// see Move.
	Target string
	// At is when it was given, and Until when it ends by itself: store times, in whole ms.
	At, Until time.Time
	// Now says that it is about what is held, too, and not only about what comes next.
	Now bool
	// By labels the operator, and Why is for people: one line each.
	By, Why string
	// Attempts at the run that a trigger asks for were made before another slot began, Spared of which count for nothing. Later ones
	// count on from there, and the next one doesn't begin before Again; zero: at any time.
	Attempts, Spared int
	Again            time.Time
}

// Removes reports that the order is the end of others: that of its kind and Target, or all of
// its kind if it has none.
func (o Order) Removes() bool { return !o.Until.After(o.At) }

// InForce reports whether the order may not be over at a time: the earliest by the
// reader's estimate, so that it doesn't end early.
func (o Order) InForce(earliest time.Time) bool { return earliest.Before(o.Until) && !o.Removes() }

// MoveRole is what a store is in the move of a worker type to another store: see Order.Move.
type MoveRole string

// The roles.
const (
	// MoveLeaving: a move from this store is under way. Until the store is the one that was left, ending the pause gives the
	// move up.
	MoveLeaving MoveRole = "leaving"
	// MoveLeft: workers on the other store may claim. If those on this one did, too, two would work at once.
	MoveLeft MoveRole = "left"
	// MoveArriving: a move to this store is under way. Workers on the other one may still hold the lease.
	MoveArriving MoveRole = "arriving"
)

// PauseOfMove is the Target of a pause that a move gives.
func PauseOfMove(role MoveRole, id string) string { return string(role) + " " + id }

// Move says by which move (package workerlease/move) a pause was given, and what the store is in it. The role is empty if
// none did. Workers obey such a pause as any other.
func (o Order) Move() (role MoveRole, id string) {
	text, id, _ := strings.Cut(o.Target, " ")
	role = MoveRole(text)
	switch known := role == MoveLeaving || role == MoveLeft || role == MoveArriving; {
	case o.Kind != OrderPause:
	case known:
		return role, id
	case strings.HasPrefix(o.Why, "it was moved to another store"): // as earlier versions wrote it
		return MoveLeft, ""
	case strings.HasPrefix(o.Why, "it moves to another store"):
		return MoveLeaving, ""
	}
	return "", ""
}

// Check returns nil if the order may be written, or else all reasons against it at once: a
// Kind of no or more than 32 bytes; a Target, By or Why of more than 256 bytes, with control
// characters, or that isn't UTF-8; and times that are zero or outside the years 1 to 9999.
// The error wraps ErrInvalid.
func (o Order) Check() error { return invalid(o.faults()) }

func (o Order) faults() (faults []error) {
	if o.Kind == "" {
		faults = append(faults, errors.New("order kind: must not be empty"))
	}
	for _, t := range []struct {
		name, value string
		most        int
	}{
		{"order kind", string(o.Kind), MaxOrderKind},
		{"order target", o.Target, MaxOrderText},
		{"order by", o.By, MaxOrderText},
		{"order why", o.Why, MaxOrderText},
	} {
		if err := errors.Join(textFaults(t.name, t.value, t.most)...); err != nil {
			faults = append(faults, err)
		} else if strings.ContainsFunc(t.value, unicode.IsControl) {
			faults = append(faults, fmt.Errorf("%s: must have no control characters", t.name))
		}
	}
	for _, t := range []struct {
		name string
		at   time.Time
	}{{"order at", o.At}, {"order until", o.Until}} {
		if truncated(t.at).IsZero() {
			faults = append(faults, fmt.Errorf("%s: must be set", t.name))
		}
		faults = append(faults, timeFaults(t.name, t.at)...)
	}
	if o.Attempts < 0 || o.Attempts > MaxAttempt || o.Spared < 0 || o.Spared > o.Attempts {
		faults = append(faults, fmt.Errorf("order attempts: %d, %d of them spared, must be 0 … %d, and no more spared", o.Attempts, o.Spared, MaxAttempt))
	}
	if !o.Again.IsZero() {
		faults = append(faults, timeFaults("order again", o.Again)...)
	}
	return faults
}

// String is the order for a person.
func (o Order) String() string {
	var b strings.Builder
	switch until := Format(o.Until); {
	case o.Removes():
		b.WriteString("no more " + string(o.Kind))
		if o.Target != "" {
			b.WriteString(" of " + o.Target)
		}
	case o.Kind == OrderPause:
		b.WriteString("paused until " + until)
	case o.Kind == OrderPrefer:
		b.WriteString("prefers " + o.Target + " until " + until)
	case o.Kind == OrderRelease:
		b.WriteString("asks for the release of claim " + o.Target)
	case o.Kind == OrderDrain:
		b.WriteString("drains host " + o.Target + " until " + until)
	case o.Kind == OrderTrigger:
		b.WriteString("one more run, to begin before " + until)
	default:
		fmt.Fprintf(&b, "%s %s until %s", o.Kind, o.Target, until)
	}
	if o.Now && !o.Removes() && o.Kind != OrderRelease {
		b.WriteString(", at once")
		if o.By != "" {
			b.WriteString(",")
		}
	}
	if o.By != "" {
		b.WriteString(" by " + o.By)
	}
	if o.Why != "" {
		b.WriteString(": " + o.Why)
	}
	return b.String()
}

// orderText is the stored form. Times are as in Format, so that people can read them.
type orderText struct {
	Kind   OrderKind `json:"kind"`
	Target string    `json:"target,omitempty"`
	At     string    `json:"at"`
	Until  string    `json:"until"`
	Now    bool      `json:"now,omitempty"`
	By     string    `json:"by,omitempty"`
	Why    string    `json:"why,omitempty"`

	Attempts int    `json:"attempts,omitempty"`
	Spared   int    `json:"spared,omitempty"`
	Again    string `json:"again,omitempty"`
}

// MarshalJSON is the order as records have it.
func (o Order) MarshalJSON() ([]byte, error) {
	return []byte(compact(o.text())), nil
}

// UnmarshalJSON reads the stored form, and refuses what Check refuses.
func (o *Order) UnmarshalJSON(b []byte) error {
	var t orderText
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	*o = Order{Kind: t.Kind, Target: t.Target, Now: t.Now, By: t.By, Why: t.Why, Attempts: t.Attempts, Spared: t.Spared}
	for _, of := range []struct {
		name, text string
		at         *time.Time
	}{{"at", t.At, &o.At}, {"until", t.Until, &o.Until}, {"again", t.Again, &o.Again}} {
		if of.at == &o.Again && of.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, of.text)
		if err != nil {
			return fmt.Errorf("order %s %.40q: must be a time as in RFC 3339", of.name, of.text)
		}
		*of.at = truncated(at)
	}
	return errors.Join(o.faults()...)
}

func (o Order) text() orderText {
	t := orderText{o.Kind, o.Target, Format(o.At), Format(o.Until), o.Now, o.By, o.Why, o.Attempts, o.Spared, ""}
	if !o.Again.IsZero() {
		t.Again = Format(o.Again)
	}
	return t
}

// compact is JSON on one line in which < and the like stand for themselves.
func compact(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "" // Strings and bools always have a form.
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// FormatOrders is the text of orders as Record.Orders has it, empty for none: compact JSON in the given
// order. The error wraps ErrInvalid: an order fails its Check, there are more than 8, or the
// text has more than 2 KiB.
func FormatOrders(orders []Order) (string, error) {
	if len(orders) == 0 {
		return "", nil
	}
	var faults []error
	list := make([]orderText, len(orders))
	for i, o := range orders {
		faults = append(faults, o.faults()...)
		list[i] = o.text()
	}
	text := compact(list)
	if len(orders) > MaxOrderCount {
		faults = append(faults, fmt.Errorf("orders: %d of them, at most %d allowed", len(orders), MaxOrderCount))
	}
	faults = append(faults, textFaults("orders", text, MaxOrders)...)
	return text, invalid(faults)
}

// ParseOrders reads Record.Orders. Fields that this version doesn't know are ignored. The
// error wraps ErrInvalid.
func ParseOrders(text string) ([]Order, error) {
	orders, faults := parseOrders(text)
	if len(faults) > 0 {
		return nil, invalid(faults)
	}
	return orders, nil
}

func parseOrders(text string) (orders []Order, faults []error) {
	if text == "" {
		return nil, nil
	}
	if faults = textFaults("orders", text, MaxOrders); len(faults) == 0 {
		if err := json.Unmarshal([]byte(text), &orders); err != nil {
			faults = append(faults, fmt.Errorf("orders: %w", err))
		} else if n := len(orders); n == 0 || n > MaxOrderCount {
			faults = append(faults, fmt.Errorf("orders: %d of them, must be 1 … %d, or an empty text", n, MaxOrderCount))
		}
	}
	return orders, faults
}

// OrdersAt returns the orders of a record that may be in force at a time, oldest first: the
// earliest by the reader's estimate. It is nil if there are none, or if Orders is invalid.
func (r Record) OrdersAt(earliest time.Time) []Order {
	orders, err := ParseOrders(r.Orders)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(orders, func(o Order) bool { return !o.InForce(earliest) })
}

// Order returns the one order that a record of KindOrder has brought, and whether it has one.
func (r Record) Order() (Order, bool) {
	var o Order
	if r.Kind != KindOrder || json.Unmarshal([]byte(r.Metadata), &o) != nil {
		return Order{}, false
	}
	return o, true
}

// WithOrder returns orders with one more in force, or without those that it removes. There is
// one pause, one preference and one release at most, and one drain for each host: the new one
// takes the place of the old one. Triggers stand beside each other.
func WithOrder(orders []Order, o Order) []Order {
	kept := slices.DeleteFunc(slices.Clone(orders), func(old Order) bool {
		switch {
		case old.Kind != o.Kind:
			return false
		case o.Kind == OrderDrain || o.Removes():
			return o.Target == "" || old.Target == o.Target
		}
		return o.Kind != OrderTrigger
	})
	if o.Removes() {
		return kept
	}
	return append(kept, o)
}
