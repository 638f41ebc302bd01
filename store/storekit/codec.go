package storekit

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
)

// maxExact is the largest whole number that JSON readers with IEEE doubles keep,
// Azure Cosmos DB among them.
const maxExact = 1<<53 - 1

// MaxDocument is the size of the largest document that a store must read, in bytes. A record that passes its Check has
// less than 100 KiB, but another version or program may add to it, and then its lease is in force all the same.
const MaxDocument = 8 << 20

// stored is the document of a record.
type stored struct {
	ID          string `json:"id"`
	WorkerType  string `json:"workerType"`
	Seq         int64  `json:"seq"`
	Kind        string `json:"kind"`
	InstanceID  string `json:"instanceId"`
	Group       string `json:"group"`
	Claim       string `json:"claim"`
	Priority    int    `json:"priority"`
	SlotStart   string `json:"slotStart,omitempty"`
	SlotEnd     string `json:"slotEnd,omitempty"`
	WindowStart string `json:"windowStart"`
	WindowEnd   string `json:"windowEnd"`
	// Token is a number, or decimal digits where a double isn't exact.
	Token     any    `json:"token"`
	Schedule  string `json:"schedule"`
	FixedAt   string `json:"fixedAt,omitempty"`
	ReadAt    string `json:"readAt,omitempty"`
	Worker    worker `json:"worker"`
	Work      string `json:"work,omitempty"`
	Metadata  string `json:"metadata"`
	DoneUntil string `json:"doneUntil,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	Spared    int    `json:"spared,omitempty"`
	Orders    string `json:"orders,omitempty"`
	Done      string `json:"done,omitempty"`
}

type worker struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// Encode is the JSON document of a record that passed its Check: the fields are those of store.Record in
// camelCase, id is store.Key, and times are RFC 3339 in UTC with ms, cut off. A token that a double doesn't
// hold is written as text.
func Encode(r store.Record) ([]byte, error) {
	r = r.Truncated()
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return store.Format(t)
	}
	d := stored{
		ID:          store.Key(r.WorkerType, r.Seq),
		WorkerType:  r.WorkerType,
		Seq:         r.Seq,
		Kind:        string(r.Kind),
		InstanceID:  r.InstanceID,
		Group:       r.Group,
		Claim:       r.Claim,
		Priority:    r.Priority,
		SlotStart:   at(r.SlotStart),
		SlotEnd:     at(r.SlotEnd),
		WindowStart: at(r.WindowStart),
		WindowEnd:   at(r.WindowEnd),
		Token:       r.Token,
		Schedule:    r.Schedule,
		FixedAt:     at(r.FixedAt),
		ReadAt:      at(r.ReadAt),
		Worker:      worker{Host: r.Worker.Host, PID: r.Worker.PID, Version: r.Worker.Version},
		Work:        r.Work,
		Metadata:    r.Metadata,
		DoneUntil:   at(r.DoneUntil),
		Attempt:     r.Attempt,
		Spared:      r.Spared,
		Orders:      r.Orders,
		Done:        r.Done,
	}
	if r.Token > maxExact {
		d.Token = strconv.FormatInt(r.Token, 10)
	}
	return json.Marshal(d)
}

// Decode reads the JSON document at a key, as the contract of store.Ledger demands: an envelope that can't be read
// gives a record that has only its key and a Defect, and information that is unfit is left out. It takes numbers
// and times as other writers may write them, but nothing that two readers may read in two ways.
func Decode(workerType string, seq int64, raw []byte) store.Record {
	values, err := members(raw)
	if err != nil {
		return document.Defective(workerType, seq, err)
	}
	return document.Decode(workerType, seq, func(f *document.Faults) document.Source { return source{values, f} })
}

// Frees reports whether the JSON document of a record may free a lease, for a store.Watcher. What can't be read may.
func Frees(raw []byte) bool {
	var r struct {
		Kind store.Kind `json:"kind"`
	}
	return json.Unmarshal(raw, &r) != nil || store.Frees(r.Kind)
}
