package priority

import "fmt"

// TieBreak says which worker comes first among those of equal priority. The
// zero value is Sticky.
type TieBreak int

const (
	// Sticky lets the holder of the slot before claim first, so that work stays
	// where it is.
	Sticky TieBreak = iota
	// Rotate lets the holder of the slot before claim last, so that work goes
	// round.
	Rotate
	// Random makes no difference between workers.
	Random
	// Spread lets those workers claim first that are to have the slots, so that many worker types spread
	// evenly over the clients that have workers for them. It needs a roster; as long as
	// that isn't known, it is Sticky.
	Spread
)

// names are the tie-breaks as text, by value.
var names = [...]string{Sticky: "sticky", Rotate: "rotate", Random: "random", Spread: "spread"}

// String is "sticky", "rotate", "random" or "spread".
func (t TieBreak) String() string {
	if !t.known() {
		return fmt.Sprintf("TieBreak(%d)", int(t))
	}
	return names[t]
}

// ParseTieBreak reads what String writes.
func ParseTieBreak(text string) (TieBreak, error) {
	for t, name := range names {
		if text == name {
			return TieBreak(t), nil
		}
	}
	return Sticky, fmt.Errorf("tie-break %q: want sticky, rotate, random or spread", text)
}

// MarshalText is String for JSON and flags; a value that isn't one of the
// constants is an error.
func (t TieBreak) MarshalText() ([]byte, error) {
	if !t.known() {
		return nil, fmt.Errorf("tie-break %d: want sticky (0), rotate (1), random (2) or spread (3)", int(t))
	}
	return []byte(names[t]), nil
}

// UnmarshalText is ParseTieBreak for JSON and flags. It leaves t alone if
// there is an error.
func (t *TieBreak) UnmarshalText(text []byte) error {
	parsed, err := ParseTieBreak(string(text))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}

// known reports whether t is one of the constants.
func (t TieBreak) known() bool { return t >= 0 && int(t) < len(names) }
