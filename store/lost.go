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
	// Seq, Token, Claim and InstanceID are those of the record.
	Seq, Token int64
	Claim      string
	InstanceID string
	// End is that of its window.
	End time.Time
}

// lostJSON is how a Lost is stored, in a field of its own: readers that don't know it see no outcome.
type lostJSON struct {
	Lost struct {
		Seq        int64  `json:"seq"`
		Token      int64  `json:"token"`
		Claim      string `json:"claim"`
		InstanceID string `json:"instanceId"`
		End        string `json:"windowEnd"`
	} `json:"lost"`
}

// Metadata is the loss as the Metadata of a record: compact JSON.
func (l Lost) Metadata() string {
	var out lostJSON
	out.Lost.Seq, out.Lost.Token, out.Lost.Claim, out.Lost.InstanceID, out.Lost.End = l.Seq, l.Token, l.Claim, l.InstanceID, Format(l.End)
	text, _ := json.Marshal(out)
	return string(text)
}

// Lost is the record that the store has lost, as r says. It reports false for a record that says nothing of the kind. Times are in
// UTC, cut to milliseconds.
func (r Record) Lost() (Lost, bool) {
	var in lostJSON
	if r.Defect != "" || r.Kind != KindOutcome || json.Unmarshal([]byte(r.Metadata), &in) != nil {
		return Lost{}, false
	}
	l := in.Lost
	end, err := time.Parse(time.RFC3339, l.End)
	if err != nil || timeFaults("", end) != nil || l.Seq < 1 || l.Seq > MaxSeq || textFaults("", l.Claim, maxLabel) != nil || textFaults("", l.InstanceID, maxLabel) != nil {
		return Lost{}, false
	}
	return Lost{Seq: l.Seq, Token: l.Token, Claim: l.Claim, InstanceID: l.InstanceID, End: truncated(end)}, true
}
