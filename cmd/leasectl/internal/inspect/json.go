package inspect

import (
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Slot is a row of the JSON form. Its names don't change.
type Slot struct {
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
	Overridden  string        `json:"overriddenAt,omitempty"`
	Result      store.Result  `json:"result,omitempty"`
	GivenUp     bool          `json:"givenUp,omitempty"`
	Silent      bool          `json:"silent,omitempty"`
	ExitCode    *int          `json:"exitCode,omitempty"`
	Cause       store.Cause   `json:"cause,omitempty"`
	Error       string        `json:"error,omitempty"`
	Output      string        `json:"output,omitempty"`
	WorkedBy    string        `json:"workedBy,omitempty"`
	BegunAt     string        `json:"begunAt,omitempty"`
	EndedAt     string        `json:"endedAt,omitempty"`
	TookMs      *int64        `json:"tookMs,omitempty"`
	RunsFor     string        `json:"runsForSlot,omitempty"`
	RunsSince   string        `json:"runsSince,omitempty"`
	CaughtUp    bool          `json:"caughtUp,omitempty"`
	OverranMs   int64         `json:"overranMs,omitempty"`
	Order       *Order        `json:"order,omitempty"`
	MissedSlots int           `json:"missedSlots,omitempty"`
	Missing     []Missing     `json:"missedBy,omitempty"`
	Extended    int           `json:"extended,omitempty"`
	NewestSeq   int64         `json:"newestSeq,omitempty"`
	Note        string        `json:"note,omitempty"`
}

// Snapshot is the JSON form of a snapshot. Its names don't change.
type Snapshot struct {
	StoreTime  string        `json:"storeTime"`
	Store      string        `json:"store"`
	WorkerType string        `json:"workerType"`
	Slots      []Slot        `json:"slots"`
	Warning    string        `json:"warning,omitempty"`
	Note       string        `json:"note,omitempty"`
	Lost       string        `json:"lost,omitempty"`
	Try        string        `json:"try,omitempty"`
	Units      *charges.JSON `json:"requestUnits,omitempty"`
}

// jsonTime is a time in JSON. The zero time is left out, and so is a time that RFC 3339
// has no form for, which a record that can't be obeyed may hold.
func jsonTime(t time.Time) string {
	if year := t.UTC().Year(); t.IsZero() || year < 0 || year > 9999 {
		return ""
	}
	return store.Format(t)
}

func (s snapshot) json() any { return s.data() }

func (s snapshot) data() Snapshot {
	out := Snapshot{StoreTime: store.Format(s.at), Store: s.store, WorkerType: s.workerType, Slots: []Slot{}, Warning: s.warning, Note: s.note, Try: s.try, Units: charges.ToJSON(s.charges)}
	if len(s.lost) > 0 {
		out.Lost = LostText(s.lost)
	}
	for _, e := range s.rows {
		row := slotOf(e, s.at)
		if e.State == history.Missed {
			row.Missing = s.reasons[e.Slot.Start]
		}
		out.Slots = append(out.Slots, row)
	}
	return out
}

// slotOf is the JSON form of an entry, at a time.
func slotOf(e history.Entry, now time.Time) Slot {
	r := e.Record
	row := Slot{
		SlotStart: jsonTime(e.Slot.Start), SlotEnd: jsonTime(e.Slot.End), State: e.State,
		Seq: r.Seq, Kind: string(r.Kind), InstanceID: r.InstanceID, Group: r.Group, Token: r.Token,
		WindowStart: jsonTime(e.Window.Start), WindowEnd: jsonTime(e.Window.End),
		ReleasedAt: jsonTime(e.ReleasedAt), Overridden: jsonTime(e.OverriddenAt), Note: e.Note(),
		Extended: e.Extensions, NewestSeq: e.NewestSeq, Attempt: e.Attempt, Cause: e.Cause, Silent: e.Silent(),
		RunsFor: jsonTime(e.RunsFor.Start), RunsSince: jsonTime(e.RunsSince), CaughtUp: e.CaughtUp(), OverranMs: e.Overran(now).Milliseconds(),
	}
	if e.Order != nil {
		row.Order = new(orderOf(*e.Order))
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
	if o := e.Outcome; e.OutcomeKnown {
		row.Result, row.GivenUp, row.Error, row.Output, row.WorkedBy = o.Result, o.GivenUp, o.Error, o.Output, o.InstanceID
		row.BegunAt, row.EndedAt = jsonTime(o.Begun), jsonTime(o.Ended)
		if o.Exited {
			row.ExitCode = &o.ExitCode
		}
		if took, ok := o.Took(); ok {
			ms := took.Milliseconds()
			row.TookMs = &ms
		}
	}
	return row
}
