package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// MaxDone is the largest Record.Done, in bytes.
const MaxDone = 512

// Done is the newest slot whose work is done, as the worker had it in its schedule.
type Done struct {
	// Start and End are those of the slot.
	Start, End time.Time
	// Zone is the time zone of the schedule, empty for UTC, and Offset what it adds to UTC at
	// Start, in whole seconds: releases of the tz database may differ.
	Zone   string
	Offset time.Duration
}

// doneText is how a Done is stored, as JSON.
type doneText struct {
	Start  string `json:"start"`
	End    string `json:"end"`
	Zone   string `json:"zone,omitempty"`
	Offset int64  `json:"offset,omitempty"` // in seconds
}

// IsZero reports whether d is the zero Done, which stands for "not known".
func (d Done) IsZero() bool { return d == Done{} }

// String is d as Record.Done has it: compact JSON, empty for the zero Done.
func (d Done) String() string {
	if d.IsZero() {
		return ""
	}
	return compact(doneText{Format(d.Start), Format(d.End), d.Zone, int64(d.Offset / time.Second)})
}

// ParseDone reads Record.Done. Fields that this version doesn't know are ignored. The zero Done
// comes from an empty text. The error wraps ErrInvalid.
func ParseDone(text string) (Done, error) {
	d, err := parseDone(text)
	if err != nil {
		return Done{}, fmt.Errorf("%w: done: %w", ErrInvalid, err)
	}
	return d, nil
}

func parseDone(text string) (d Done, err error) {
	if text == "" {
		return Done{}, nil
	}
	if faults := textFaults("text", text, MaxDone); len(faults) > 0 {
		return Done{}, errors.Join(faults...)
	}
	var t doneText
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return Done{}, err
	}
	d = Done{Zone: t.Zone, Offset: time.Duration(t.Offset) * time.Second}
	for _, of := range []struct {
		text string
		at   *time.Time
	}{{t.Start, &d.Start}, {t.End, &d.End}} {
		at, err := time.Parse(time.RFC3339, of.text)
		if err != nil {
			return Done{}, fmt.Errorf("%.40q: must be a time as in RFC 3339", of.text)
		}
		*of.at = truncated(at)
		if faults := timeFaults("time", *of.at); len(faults) > 0 {
			return Done{}, faults[0]
		}
	}
	if day := int64(24 * time.Hour / time.Second); t.Offset <= -2*day || t.Offset >= 2*day {
		return Done{}, fmt.Errorf("offset %d: must be less than two days", t.Offset)
	}
	if !d.Start.Before(d.End) {
		return Done{}, fmt.Errorf("%s … %s: must end after it starts", t.Start, t.End)
	}
	return d, nil
}

// DoneBefore is up to when slots that start are done, as far as r says: the start of the newest
// one that is, or else DoneUntil.
func (r Record) DoneBefore() time.Time {
	if d, err := ParseDone(r.Done); err == nil && !d.IsZero() {
		return d.Start
	}
	return r.DoneUntil
}
