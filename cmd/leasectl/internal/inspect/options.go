package inspect

import (
	"fmt"
	"io"
	"time"
)

// Options are the options of inspect slots.
type Options struct {
	WorkerType string        // "": the only one of the ledger
	Last       int           // how many rows to show
	JSON       bool          // as JSON, not as a table
	Watch      bool          // show them again and again
	Interval   time.Duration // between two looks
	Timeout    time.Duration // of each look
}

// Screen is where slots are shown.
type Screen struct {
	io.Writer

	Terminal bool // the table can be drawn over the last one
	Colours  bool
	Width    int // how many columns a line has room for; 0: as usual, 80
	// Report shows an error of a look, when there will be another.
	Report func(error)
}

// width is how many columns a line has room for: 20 at least.
func (s Screen) width() int {
	if s.Width == 0 {
		return 80
	}
	return max(s.Width, 20)
}

func (s Screen) printf(format string, args ...any) { _, _ = fmt.Fprintf(s, format, args...) }
