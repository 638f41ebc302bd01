package cosmos

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
)

// fieldID is the name of the key. The other names are those of package document.
const fieldID = "id"

// projection asks for the fields that decode reads. Names are quoted since some
// are words of the query language.
var projection = func() string {
	quoted := []string{`c["` + fieldID + `"]`}
	for _, name := range document.Fields() {
		quoted = append(quoted, `c["`+name+`"]`)
	}
	return strings.Join(quoted, ", ")
}()

// maxExact is the largest whole number that JSON readers with IEEE doubles keep,
// Azure Cosmos DB among them.
const maxExact = 1<<53 - 1

// stored is the item of a record.
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
	Metadata  string `json:"metadata"`
	DoneUntil string `json:"doneUntil,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	Orders    string `json:"orders,omitempty"`
}

type worker struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// encode is the item of a record that passed its Check.
func encode(r store.Record) ([]byte, error) {
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
		Metadata:    r.Metadata,
		DoneUntil:   at(r.DoneUntil),
		Attempt:     r.Attempt,
		Orders:      r.Orders,
	}
	if r.Token > maxExact {
		d.Token = strconv.FormatInt(r.Token, 10)
	}
	return json.Marshal(d)
}

// decode reads the item at a key.
func decode(workerType string, seq int64, raw []byte) store.Record {
	values, err := members(raw)
	if err != nil {
		return document.Defective(workerType, seq, err)
	}
	return document.Decode(workerType, seq, func(f *document.Faults) document.Source { return source{values, f} })
}
