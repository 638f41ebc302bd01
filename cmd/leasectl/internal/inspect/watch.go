package inspect

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// view is what a look has found.
type view interface {
	drawing(colours, framed bool) string
	writeJSON(w io.Writer, indent bool) error
	warns() string
}

// whole is a view that is printed as a whole when what matters of it has changed.
type whole interface {
	view
	matters() string
}

// glance shows what looks find, once or again and again.
func glance[V whole](ctx context.Context, o Options, to Screen, look func() (V, error)) error {
	if !o.Watch {
		return once(o, to, look)
	}
	var last *string
	return watch(ctx, o, to, look, func(found V) error {
		now := found.matters()
		if last != nil && *last == now {
			return nil
		}
		last = &now
		if o.Output == JSON {
			return found.writeJSON(to, false)
		}
		to.printf("%s", found.drawing(to.Colours, false))
		return nil
	})
}

// watch shows what looks find until ctx ends. On a terminal it draws that again, otherwise it
// prints what changed. A store that fails is reported once, and asked again.
func watch[V view](ctx context.Context, o Options, to Screen, look func() (V, error), print func(V) error) error {
	terminal := to.Terminal && o.Output == Table
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
			// Home, draw, and clear the rest of the last picture.
			to.printf("\x1b[H%s", strings.ReplaceAll(fitted(s.drawing(to.Colours, true), to.Width), "\n", "\x1b[K\n")+"\x1b[J")
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

// watchSlots is watch for the slots of a worker type.
func watchSlots(ctx context.Context, o Options, to Screen, look func() (snapshot, error)) error {
	last := printed{rows: map[string]string{}}
	return watch(ctx, o, to, look, func(s snapshot) error { return last.print(s, o, to) })
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

func (s snapshot) warns() string { return s.warning }

// printed is what was printed last of each row, and whether there was a warning.
type printed struct {
	rows   map[string]string
	warned bool
}

// rowText is a row in a form of output. What doesn't show in it is no change.
func rowText(e history.Entry, output string) (string, error) {
	var b bytes.Buffer
	if output == JSON {
		err := (snapshot{rows: []history.Entry{e}}).writeJSON(&b, false)
		return b.String(), err
	}
	for _, c := range cells(e, timeStyle{}) {
		b.WriteString(c.Text + "\t")
	}
	return b.String(), nil
}

// print prints the rows that are new or have changed; in JSON, the whole snapshot if any
// has, or a warning has come or gone.
func (last *printed) print(s snapshot, o Options, to Screen) error {
	var changed []history.Entry
	for _, e := range s.rows {
		id := strconv.FormatInt(e.Record.Seq, 10) + " " + store.Format(e.Slot.Start)
		now, err := rowText(e, o.Output)
		if err != nil {
			return err
		}
		if last.rows[id] != now {
			last.rows[id] = now
			changed = append(changed, e)
		}
	}
	warned := s.warning != ""
	turned := warned != last.warned
	last.warned = warned
	switch {
	case len(changed) == 0 && (!turned || o.Output != JSON):
		return nil
	case o.Output == JSON:
		return s.writeJSON(to, false)
	}
	// Rows that are printed at different times must have the same columns.
	s.dated = true
	if len(last.rows) == len(changed) {
		to.printf("%s", s.drawing(to.Colours, false))
		return nil
	}
	s.rows = changed
	to.printf("%s\n", strings.Join(s.tableLines(to.Colours)[1:], "\n"))
	return nil
}
