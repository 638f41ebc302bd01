package event

import (
	"log/slog"

	"github.com/slotlease/slotlease/store"
)

// line is how an event is logged, whatever the logger.
type line struct {
	level   slog.Level
	message string
	attrs   []attr
}

// attr is a key and a value: a string, a number, a bool, a time.Duration, an error or a
// fmt.Stringer.
type attr struct {
	key   string
	value any
}

type attrs = []attr

// lineOf is how an event is logged, which stands beside its type: see LogTo for the levels.
func lineOf(e Event) line {
	if l, ok := e.(interface{ line() line }); ok {
		return l.line()
	}
	return line{slog.LevelDebug, "event", nil}
}

// trouble is the line of a failure of the store. An outage has one when it begins, whatever is tried meanwhile, with what to do.
func trouble(message string, again bool, err error, a attrs) line {
	if again {
		return line{slog.LevelDebug, message, a}
	}
	if remedy := store.Remedy(err); remedy != "" {
		a = append(a, attr{"try", remedy})
	}
	return line{slog.LevelWarn, message, a}
}
