package cosmos

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
)

// The stored fields. Those of the envelope are demanded by decode.
const (
	fieldID          = "id"
	fieldWorkerType  = "workerType"
	fieldSeq         = "seq"
	fieldKind        = "kind"
	fieldInstanceID  = "instanceId"
	fieldGroup       = "group"
	fieldClaim       = "claim"
	fieldPriority    = "priority"
	fieldSlotStart   = "slotStart"
	fieldSlotEnd     = "slotEnd"
	fieldWindowStart = "windowStart"
	fieldWindowEnd   = "windowEnd"
	fieldToken       = "token"
	fieldSchedule    = "schedule"
	fieldFixedAt     = "fixedAt"
	fieldReadAt      = "readAt"
	fieldWorker      = "worker"
	fieldMetadata    = "metadata"
	fieldDoneUntil   = "doneUntil"
	fieldAttempt     = "attempt"
)

// projection asks for the fields that decode reads and no others, so that a
// large item of somebody else's is not carried over the network. Names are quoted
// since some are words of the query language.
var projection = func() string {
	fields := []string{
		fieldID, fieldWorkerType, fieldSeq, fieldKind, fieldInstanceID, fieldGroup, fieldClaim, fieldPriority,
		fieldSlotStart, fieldSlotEnd, fieldWindowStart, fieldWindowEnd, fieldToken, fieldSchedule, fieldFixedAt,
		fieldReadAt, fieldWorker, fieldMetadata, fieldDoneUntil, fieldAttempt,
	}
	for i, f := range fields {
		fields[i] = `c["` + f + `"]`
	}
	return strings.Join(fields, ", ")
}()

// maxExact is the largest whole number that JSON readers with IEEE doubles keep,
// Azure Cosmos DB among them.
const maxExact = 1<<53 - 1

// document is the item of a record.
type document struct {
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
}

type worker struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// encode is the item of a record that passed its Check. It fails for times that
// can't be written with a year of four digits.
func encode(r store.Record) ([]byte, error) {
	r = r.Truncated()
	var errs []error
	at := func(name string, t time.Time) string {
		switch year := t.Year(); {
		case t.IsZero():
			return ""
		case year < 1 || year > 9999:
			errs = append(errs, fmt.Errorf("%w: %s: the year %d is not one of 1 to 9999", store.ErrInvalid, name, year))
			return ""
		}
		return store.Format(t)
	}
	d := document{
		ID:          store.Key(r.WorkerType, r.Seq),
		WorkerType:  r.WorkerType,
		Seq:         r.Seq,
		Kind:        string(r.Kind),
		InstanceID:  r.InstanceID,
		Group:       r.Group,
		Claim:       r.Claim,
		Priority:    r.Priority,
		SlotStart:   at(fieldSlotStart, r.SlotStart),
		SlotEnd:     at(fieldSlotEnd, r.SlotEnd),
		WindowStart: at(fieldWindowStart, r.WindowStart),
		WindowEnd:   at(fieldWindowEnd, r.WindowEnd),
		Token:       r.Token,
		Schedule:    r.Schedule,
		FixedAt:     at(fieldFixedAt, r.FixedAt),
		ReadAt:      at(fieldReadAt, r.ReadAt),
		Worker:      worker{Host: r.Worker.Host, PID: r.Worker.PID, Version: r.Worker.Version},
		Metadata:    r.Metadata,
		DoneUntil:   at(fieldDoneUntil, r.DoneUntil),
		Attempt:     r.Attempt,
	}
	if r.Token > maxExact {
		d.Token = strconv.FormatInt(r.Token, 10)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return json.Marshal(d)
}

// decode reads the item at a key. It is strict with the envelope: what is missing
// or of a wrong type gives a record that has only its key and a Defect. Fields
// that this version doesn't know are passed over, and so are those that are for
// information only and are unfit: that costs the information, never the record.
func decode(workerType string, seq int64, raw []byte) store.Record {
	fields, err := members(raw)
	if err != nil {
		return defective(workerType, seq, err)
	}
	d := decoder{fields: fields}
	if got := d.text(fieldWorkerType, true, 63); got != workerType {
		d.fail(fieldWorkerType, "is not that of the key")
	}
	if got := d.whole(fieldSeq); got != seq {
		d.fail(fieldSeq, "is not that of the key")
	}
	r := store.Record{
		WorkerType:  workerType,
		Seq:         seq,
		Kind:        store.Kind(d.text(fieldKind, true, 32)),
		InstanceID:  d.text(fieldInstanceID, true, 256),
		Group:       d.text(fieldGroup, false, 256),
		Claim:       d.text(fieldClaim, true, 64),
		WindowStart: d.time(fieldWindowStart, true),
		WindowEnd:   d.time(fieldWindowEnd, true),
		Token:       d.token(fieldToken),
		ReadAt:      d.time(fieldReadAt, false),
	}
	if d.err != nil {
		return defective(workerType, seq, d.err)
	}
	info := decoder{fields: fields, lenient: true}
	r.Priority = int(info.whole(fieldPriority))
	r.SlotStart, r.SlotEnd = info.time(fieldSlotStart, false), info.time(fieldSlotEnd, false)
	r.FixedAt, r.DoneUntil = info.time(fieldFixedAt, false), info.time(fieldDoneUntil, false)
	// What is beyond the bounds stays so where an int has 32 bits.
	r.Attempt = int(min(max(info.whole(fieldAttempt), -1), store.MaxAttempt+1))
	r.Schedule, r.Metadata = info.text(fieldSchedule, false, math.MaxInt), info.text(fieldMetadata, false, math.MaxInt)
	if w, err := members(info.value(fieldWorker)); err == nil {
		in := decoder{fields: w, lenient: true}
		r.Worker.Host, r.Worker.Version = in.text("host", false, math.MaxInt), in.text("version", false, math.MaxInt)
		r.Worker.PID = int(in.whole("pid"))
	}
	return r.Cleaned()
}

// defective is what is shown of an item that can't be decoded.
func defective(workerType string, seq int64, err error) store.Record {
	return store.Record{WorkerType: workerType, Seq: seq, Defect: oneLine(err.Error())}
}

// seqOf is the Seq in an item's id, if it is a key that can be followed.
func seqOf(workerType, id string) (int64, bool) {
	digits, ok := strings.CutPrefix(id, workerType+":")
	if !ok || len(digits) != 20 {
		return 0, false
	}
	seq, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || seq < 1 || seq > store.MaxSeq || digits[0] != '0' {
		return 0, false
	}
	return seq, true
}
