package display

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// EscapeJSON is JSON, as an encoder wrote it, with an escape for every [Hidden] character: the
// standard encoder escapes C0 and the separators of lines alone. They stand in strings only, so
// that no reader sees a difference. White space between values stays.
func EscapeJSON(encoded []byte) []byte {
	out := make([]byte, 0, len(encoded))
	for rest := encoded; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, `\ufffd`...)
		case !Hidden(r), r == '\n', r == '\t':
			out = append(out, rest[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		rest = rest[n:]
	}
	return out
}

// JSONWriter passes JSON on as [EscapeJSON] escapes it. Each Write must be whole values.
type JSONWriter struct{ To io.Writer }

// Write writes p with its escapes.
func (w JSONWriter) Write(p []byte) (int, error) { return all(w.To, EscapeJSON(p), len(p)) }

// all writes what was made of n bytes, and returns n if it is all written.
func all(to io.Writer, made []byte, n int) (int, error) {
	if _, err := to.Write(made); err != nil {
		return 0, err
	}
	return n, nil
}

// WriteJSON writes a value as JSON, as [EscapeJSON] escapes it, on one line or indented.
func WriteJSON(w io.Writer, value any, indent bool) error {
	encoder := json.NewEncoder(JSONWriter{To: w})
	encoder.SetEscapeHTML(false)
	if indent {
		encoder.SetIndent("", "  ")
	}
	return encoder.Encode(value)
}
