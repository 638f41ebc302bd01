package display

import (
	"io"
	"regexp"
	"strings"
)

// Writer passes on text without [Hidden] characters, but for line feeds and tabs. It is the
// last thing in front of a terminal, or of a file that somebody may show on one.
type Writer struct {
	To io.Writer
	// Terminal lets the orders of leasectl's own pictures pass, too: colours, and home and
	// clear, and how lines end. They can do no harm wherever else they come from, but to the picture.
	Terminal bool
}

// own are the orders to a terminal that leasectl gives.
var own = regexp.MustCompile(`\x1b\[(?:[0-9]{1,2}m|H|2?J|K|\?7[lh])`)

// Write writes p cleaned. Each Write must be whole characters.
func (w Writer) Write(p []byte) (int, error) {
	text := string(p)
	var b strings.Builder
	if w.Terminal {
		for _, at := range own.FindAllStringIndex(text, -1) {
			done := len(p) - len(text)
			b.WriteString(cleaned(string(p[done:at[0]]), "\n\t"))
			b.Write(p[at[0]:at[1]])
			text = string(p[at[1]:])
		}
	}
	b.WriteString(cleaned(text, "\n\t"))
	return all(w.To, []byte(b.String()), len(p))
}
