package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Timeline draws who held the slots of worker types, of all if none is named, from so long ago on. With Watch
// it returns when the context ends.
func Timeline(ctx context.Context, t storeuri.Target, o Options, types []string, since time.Duration, s Screen) error {
	return open(ctx, t, o, func(l store.Ledger) error {
		look := glimpses(ctx, t, l, o, func(ctx context.Context, l *charges.Ledger, found *timeline) error {
			found.since, found.width = since, s.width()
			return found.take(ctx, l, types)
		})
		return glance(ctx, o, s, look)
	})
}

// timeline are the slots of worker types at a moment.
type timeline struct {
	glimpse

	since time.Duration
	rows  []chartRow
	cut   []string // worker types of which more would have to be read
	width int
}

// take reads the slots since then: of each type as many records as that takes, up to a bound.
func (s *timeline) take(ctx context.Context, l *charges.Ledger, types []string) error {
	if err := s.now(ctx, l); err != nil {
		return err
	}
	if len(types) == 0 {
		all, err := slottedIn(ctx, l)
		if err != nil {
			return err
		}
		types = all.Valid
	}
	for _, name := range types {
		row, whole, err := since(ctx, l, name, s.at.Add(-s.since), s.at)
		if err == nil && len(row.entries) == 0 {
			err = CheckType(ctx, l, name)
		}
		if err != nil {
			return err
		}
		if !whole {
			s.cut = append(s.cut, name)
		}
		s.rows = append(s.rows, row)
	}
	return nil
}

// since are the slots of a worker type from a time on, and whether all of them were read.
func since(ctx context.Context, l store.Ledger, workerType string, from, now time.Time) (row chartRow, whole bool, err error) {
	for limit := 64; ; limit = min(4*limit, mostRecords) {
		records, _, err := l.Tail(ctx, workerType, limit)
		if err != nil {
			return row, false, err
		}
		row = chartRow{workerType, history.Read(records, now, nil), statusOf(workerType, records, now).note}
		// The first may have begun before its oldest record.
		if len(records) < limit || slices.ContainsFunc(row.entries, func(e history.Entry) bool { return !e.Slot.Start.IsZero() && !e.Slot.Start.After(from) }) {
			return row, true, nil
		}
		if limit == mostRecords {
			return row, false, nil
		}
	}
}

// matters is what is printed again if it changes.
func (s timeline) matters(bool) string { return s.chart().text(false) }

// chart is from the time that was asked for, or from the first slot that was read, up to a moment after now, in
// which claims show.
func (s timeline) chart() chart {
	from, first := s.at.Add(-s.since), s.at.Add(-10*time.Second)
	for _, row := range s.rows {
		for _, e := range row.entries {
			if start := e.Slot.Start; !start.IsZero() && start.Before(first) {
				first = start
			}
		}
	}
	if from.Before(first) {
		from = first
	}
	to := s.at.Add(s.at.Sub(from)/16 + time.Millisecond)
	return chart{from: from, to: to, now: s.at, rows: s.rows, width: s.width}
}

// drawing is the chart with its title.
func (s timeline) drawing(colours, framed bool) string {
	text := "no worker types\n"
	if len(s.rows) > 0 {
		text = s.chart().text(colours)
	}
	notes := ""
	for _, row := range s.rows {
		if row.note != "" {
			notes += display.Line(row.workerType) + ": " + display.Line(row.note) + "\n"
		}
	}
	for _, name := range s.cut {
		notes += display.Line(name) + ": only the newest records were read: a shorter --since shows all\n"
	}
	if notes != "" {
		text += "\n" + notes
	}
	return s.framed(display.Count(len(s.rows), "worker type"), text, framed)
}

// json is never asked for: leasectl inspect slots has the JSON form of slots.
func (timeline) json() any { return nil }
