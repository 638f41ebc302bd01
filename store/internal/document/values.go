package document

import (
	"fmt"
	"unicode/utf8"
)

// Faults remembers the first thing that is wrong with a document. A nil *Faults
// remembers nothing: with it a Source is lenient.
type Faults struct{ first error }

// Add notes what is wrong with a field.
func (f *Faults) Add(name, why string) {
	if f != nil && f.first == nil {
		f.first = fmt.Errorf("%s: %s", name, why)
	}
}

// Values are the values of a document's fields by name, as a store's format has
// them. A field may occur more than once.
type Values[V any] map[string][]V

// One returns the value of a field, or the zero V if there is none. Two readers
// might see different values of a field that occurs twice, so neither counts.
func (v Values[V]) One(name string, f *Faults) (value V) {
	switch values := v[name]; len(values) {
	case 0:
	case 1:
		value = values[0]
	default:
		f.Add(name, "occurs twice")
	}
	return value
}

// NotUTF8 is what is wrong with a text in another encoding.
const NotUTF8 = "is not UTF-8"

// Bounded returns a text, or notes that it has more bytes than allowed or isn't
// UTF-8.
func Bounded(name, text string, most int, f *Faults) string {
	switch {
	case len(text) > most:
		f.Add(name, fmt.Sprintf("has %d bytes, at most %d allowed", len(text), most))
		return ""
	case !utf8.ValidString(text):
		f.Add(name, NotUTF8)
		return ""
	}
	return text
}
