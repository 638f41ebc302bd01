package store

import (
	"encoding/json"
	"time"
)

// Lost is a record that a store has lost: a worker had read or appended it, and it is gone, as after a failover to a copy that
// lacked it. Whoever held a lease by it, and whoever has claimed since, may have worked at once until End. The worker that notices
// appends it as JSON in the Metadata of a record of the kind outcome, in place of an Outcome. It is for information: no worker
// decides by it.
type Lost struct {
	// Seq, Token, Claim, InstanceID and Group are those of the record.
	Seq, Token int64
	Claim      string
	InstanceID string
	Group      string
	// Start and End are those of its window or, as far as it was read, of its whole term. A zero Start means that it isn't known.
	Start, End time.Time
}

// lostJSON is how a Lost is stored, in a field of its own: readers that don't know it see no outcome.
type lostJSON struct {
	Lost struct {
		Seq        int64  `json:"seq"`
		Token      int64  `json:"token"`
		Claim      string `json:"claim"`
		InstanceID string `json:"instanceId"`
		Group      string `json:"group,omitempty"`
		Start      string `json:"windowStart,omitempty"`
		End        string `json:"windowEnd"`
	} `json:"lost"`
}

// Metadata is the loss as the Metadata of a record: compact JSON.
func (l Lost) Metadata() string {
	var out lostJSON
	out.Lost.Seq, out.Lost.Token, out.Lost.Claim, out.Lost.InstanceID, out.Lost.Group = l.Seq, l.Token, l.Claim, l.InstanceID, l.Group
	if out.Lost.End = Format(l.End); !l.Start.IsZero() {
		out.Lost.Start = Format(l.Start)
	}
	text, _ := json.Marshal(out)
	return string(text)
}

// Is reports that a record is the one that is said to be lost: then it is there after all, and reads were stale.
func (l Lost) Is(r Record) bool {
	return r.Seq == l.Seq && r.Token == l.Token && r.Claim == l.Claim && r.InstanceID == l.InstanceID && r.WindowEnd.Equal(l.End)
}

// Lost is the record that the store has lost, as r says. It reports false for a record that says nothing of the kind. Times are in
// UTC, cut to milliseconds.
func (r Record) Lost() (Lost, bool) {
	var in lostJSON
	if r.Defect != "" || r.Kind != KindOutcome || json.Unmarshal([]byte(r.Metadata), &in) != nil {
		return Lost{}, false
	}
	l, start := in.Lost, time.Time{}
	end, err := time.Parse(time.RFC3339, l.End)
	if err == nil && l.Start != "" {
		start, err = time.Parse(time.RFC3339, l.Start)
	}
	faults := append(timeFaults("", start), timeFaults("", end)...)
	for _, text := range []string{l.Claim, l.InstanceID, l.Group} {
		faults = append(faults, textFaults("", text, maxLabel)...)
	}
	if err != nil || len(faults) > 0 || l.Seq < 1 || l.Seq > MaxSeq {
		return Lost{}, false
	}
	return Lost{
		Seq: l.Seq, Token: l.Token, Claim: l.Claim, InstanceID: l.InstanceID, Group: l.Group, Start: truncated(start), End: truncated(end),
	}, true
}
