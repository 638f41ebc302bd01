package inspect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
)

// view is what a look has found.
type view interface {
	drawing(colours, framed bool) string
	json() any
	warns() string
}

// watched is a view that may be shown again.
type watched interface {
	view
	// matters is what it is shown again for, if that changes.
	matters(asJSON bool) string
}

// glance shows what looks find, once or again and again.
func glance[V watched](ctx context.Context, o Options, to Screen, look func() (V, error)) error {
	if !o.Watch {
		return once(o, to, look)
	}
	var last *string
	return watch(ctx, o, to, look, func(found V) error {
		now := found.matters(o.JSON)
		if o.JSON && found.warns() != "" {
			now += "warned"
		}
		again := last != nil
		if again && *last == now {
			return nil
		}
		last = &now
		if o.JSON {
			return writeJSON(to, found, false)
		}
		if again {
			to.printf("\n")
		}
		to.printf("%s", found.drawing(to.Colours, false))
		return nil
	})
}

// watch shows what looks find until ctx ends. On a terminal it draws that again, otherwise it
// prints what changed. A store that fails is reported once, and asked again.
func watch[V view](ctx context.Context, o Options, to Screen, look func() (V, error), print func(V) error) error {
	terminal := to.Terminal && !o.JSON
	ticker := time.NewTicker(o.Interval)
	defer ticker.Stop()
	failed, warned := "", false
	for first := true; ; first = false {
		s, err := look()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			to.warn(s, false)
			return err
		case err != nil && err.Error() != failed:
			failed = err.Error()
			to.Report(err)
		case err != nil:
		case terminal:
			failed = ""
			if first {
				to.printf("\x1b[2J")
			}
			to.printf("%s", frame(s.drawing(to.Colours, true), s.drawing(false, true), to.Width))
		default:
			failed = ""
			warned = to.warn(s, warned)
			if err := print(s); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// frame draws a picture over the last one, and clears what is left of that. Lines are cut at the margin of a terminal of some
// width, where an ellipsis says so: what follows the margin is written over its last column. plain is the picture
// without colours.
func frame(picture, plain string, width int) string {
	widths := strings.Split(plain, "\n")
	lines := strings.Split(picture, "\n")
	for i, line := range lines {
		if width > 0 && i < len(widths) && display.Width(widths[i]) > width {
			line += "…"
		}
		lines[i] = "\x1b[K" + line
	}
	return "\x1b[?7l\x1b[H" + strings.Join(lines, "\n") + "\x1b[J\x1b[?7h"
}

// warn reports the warning of a snapshot if there was none before, and reports whether there
// is one now. It may have other figures each time.
func (s Screen) warn(of view, before bool) (now bool) {
	warning := of.warns()
	if warning != "" && !before {
		s.Report(fmt.Errorf("warning: %s", warning))
	}
	return warning != ""
}
