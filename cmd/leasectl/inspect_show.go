package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// stateColours draw the eye to what matters.
var stateColours = map[history.State]table.Colour{
	history.Upcoming: table.Cyan, history.Held: table.Green, history.Released: table.Yellow, history.Missed: table.Red, history.Free: table.Yellow,
	history.Poison: table.Red, history.Expired: table.Plain, history.Done: table.Plain,
}

// clip bounds what a hostile record can make of a table.
func clip(s string) string {
	const most = 120
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// timeText is a time as shown, or "-".
func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return store.Format(t)
}

// title tells where the table comes from.
func (s snapshot) title() string {
	subject := "worker type " + s.workerType
	if s.workerType == "" {
		subject = "no worker types"
	}
	at := "store time " + store.Format(s.at)
	if title := subject + " · " + s.store + " · " + at; utf8.RuneCountInString(title) <= 80 {
		return title
	}
	return subject + " · " + at + "\n" + s.store
}

func (a *app) showTable(s snapshot) {
	a.printf("%s", a.drawing(s))
}

// slotJSON is a row of the JSON form. Its names don't change.
type slotJSON struct {
	SlotStart   string        `json:"slotStart,omitempty"`
	SlotEnd     string        `json:"slotEnd,omitempty"`
	State       history.State `json:"state"`
	Seq         int64         `json:"seq,omitempty"`
	Kind        string        `json:"kind,omitempty"`
	InstanceID  string        `json:"instanceId,omitempty"`
	Group       string        `json:"group,omitempty"`
	Priority    *int          `json:"priority,omitempty"`
	Token       int64         `json:"token,omitempty"`
	Attempt     int           `json:"attempt,omitempty"`
	ClaimedMs   *int64        `json:"claimedMs,omitempty"`
	WindowStart string        `json:"windowStart,omitempty"`
	WindowEnd   string        `json:"windowEnd,omitempty"`
	ReleasedAt  string        `json:"releasedAt,omitempty"`
	MissedSlots int           `json:"missedSlots,omitempty"`
	Extended    int           `json:"extended,omitempty"`
	NewestSeq   int64         `json:"newestSeq,omitempty"`
	Note        string        `json:"note,omitempty"`
}

// snapshotJSON is the JSON form of a snapshot. Its names don't change.
type snapshotJSON struct {
	StoreTime  string        `json:"storeTime"`
	Store      string        `json:"store"`
	WorkerType string        `json:"workerType"`
	Slots      []slotJSON    `json:"slots"`
	Units      *charges.JSON `json:"requestUnits,omitempty"`
}

// jsonTime is a time in JSON. The zero time is left out, and so is one that RFC
// 3339 has no form for, as a record that can't be obeyed may hold.
func jsonTime(t time.Time) string {
	if year := t.UTC().Year(); t.IsZero() || year < 0 || year > 9999 {
		return ""
	}
	return store.Format(t)
}

func (s snapshot) writeJSON(w io.Writer, indent bool) error {
	out := snapshotJSON{StoreTime: store.Format(s.at), Store: s.store, WorkerType: s.workerType, Slots: []slotJSON{}, Units: charges.ToJSON(s.charges)}
	for _, e := range s.rows {
		r := e.Record
		row := slotJSON{
			SlotStart: jsonTime(e.Slot.Start), SlotEnd: jsonTime(e.Slot.End), State: e.State,
			Seq: r.Seq, Kind: string(r.Kind), InstanceID: r.InstanceID, Group: r.Group, Token: r.Token,
			WindowStart: jsonTime(e.Window.Start), WindowEnd: jsonTime(e.Window.End),
			ReleasedAt: jsonTime(e.ReleasedAt), Note: e.Note(),
			Extended: e.Extensions, NewestSeq: e.NewestSeq, Attempt: e.Attempt,
		}
		if r.Seq != 0 && r.Defect == "" {
			row.Priority = &r.Priority
		}
		if e.Count > 1 {
			row.MissedSlots = e.Count
		}
		if e.ClaimKnown {
			ms := e.Claimed.Milliseconds()
			row.ClaimedMs = &ms
		}
		out.Slots = append(out.Slots, row)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if indent {
		encoder.SetIndent("", "  ")
	}
	return encoder.Encode(out)
}

// watch shows the slots until ctx ends: on a terminal it draws them again, else
// it prints what changed. A store that fails is reported and asked again.
func (a *app) watch(ctx context.Context, f inspectFlags, look func() (snapshot, error)) error {
	terminal := isTerminal(a.stdout) && f.output == "table"
	ticker := time.NewTicker(f.interval)
	defer ticker.Stop()
	shown := printed{}
	failed := ""
	for first := true; ; first = false {
		s, err := look()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil && err.Error() != failed:
			failed = err.Error()
			a.report(err)
		case err != nil:
		case terminal:
			failed = ""
			if first {
				a.printf("\x1b[2J")
			}
			// Home, draw, and clear what is left of the picture before.
			a.printf("\x1b[H%s", strings.ReplaceAll(a.drawing(s), "\n", "\x1b[K\n")+"\x1b[J")
		default:
			failed = ""
			if err := a.printChanges(s, f, shown); err != nil {
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

// drawing is the table with its title, and with what it cost, if anything.
func (a *app) drawing(s snapshot) string {
	var table string
	switch {
	case len(s.rows) > 0:
		table = strings.Join(s.tableLines(a.colour()), "\n") + "\n"
	case len(s.others) > 0:
		table = fmt.Sprintf("no records of %q yet; this ledger has: %s\n", s.workerType, display.Printable(listed(s.others)))
	default:
		table = "no records yet\n"
	}
	if cost := charges.Text(s.charges); cost != "" {
		table += "\nlooking at it cost " + cost + "\n"
	}
	return s.title() + "\n\n" + table
}

// printed is what was printed last, by row.
type printed map[string]string

// text is a row in a form of output: what doesn't show in it is no change.
func text(e history.Entry, output string) (string, error) {
	var b bytes.Buffer
	if output == "json" {
		err := (snapshot{rows: []history.Entry{e}}).writeJSON(&b, false)
		return b.String(), err
	}
	for _, c := range cells(e, timeStyle{}) {
		b.WriteString(c.Text + "\t")
	}
	return b.String(), nil
}

// printChanges prints the rows that are new or changed; in JSON, the whole
// snapshot if any did.
func (a *app) printChanges(s snapshot, f inspectFlags, last printed) error {
	var changed []history.Entry
	for _, e := range s.rows {
		id := strconv.FormatInt(e.Record.Seq, 10) + " " + timeText(e.Slot.Start)
		now, err := text(e, f.output)
		if err != nil {
			return err
		}
		if last[id] != now {
			last[id] = now
			changed = append(changed, e)
		}
	}
	switch {
	case len(changed) == 0:
		return nil
	case f.output == "json":
		return s.writeJSON(a.stdout, false)
	}
	// Lines that are printed at different times are in the same columns.
	s.dated = true
	if len(last) == len(changed) {
		a.showTable(s)
		return nil
	}
	s.rows = changed
	a.printf("%s\n", strings.Join(s.tableLines(a.colour())[1:], "\n"))
	return nil
}
