package document

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// Source reads the values of one document in a store's format. A value that is
// missing though it is required, of a wrong type, or out of bounds is noted in the
// Faults that the Source was made with, and read as zero.
type Source interface {
	// Text returns a string of UTF-8 of at most most bytes.
	Text(name string, required bool, most int) string
	// Time returns a time of the years 1 to 9999 in UTC.
	Time(name string, required bool) time.Time
	// Whole returns a whole number, which is always required. A floating-point
	// number counts if it is whole and its size is below 2^53.
	Whole(name string) int64
	// Token is Whole for the fencing token, which needs all 64 bits.
	Token(name string) int64
	// Part returns the document inside a field, or nil if there is none.
	Part(name string) Source
}

// Decode reads the document at a key through the sources that open makes. It is
// strict with the envelope: a value that is missing or of a wrong type gives a
// record that has only its key and a Defect. Fields that this version doesn't know
// are ignored, and so is information that is unfit: that costs the information,
// never the record.
func Decode(workerType string, seq int64, open func(f *Faults) Source) store.Record {
	f := &Faults{}
	d := open(f)
	if got := d.Text(WorkerType, true, 63); got != workerType {
		f.Add(WorkerType, "is not that of the key")
	}
	if got := d.Whole(Seq); got != seq {
		f.Add(Seq, "is not that of the key")
	}
	r := store.Record{
		WorkerType:  workerType,
		Seq:         seq,
		Kind:        store.Kind(d.Text(Kind, true, 32)),
		InstanceID:  d.Text(InstanceID, true, 256),
		Group:       d.Text(Group, false, 256),
		Claim:       d.Text(Claim, true, 64),
		WindowStart: d.Time(WindowStart, true),
		WindowEnd:   d.Time(WindowEnd, true),
		Token:       d.Token(Token),
		ReadAt:      d.Time(ReadAt, false),
	}
	if f.first != nil {
		return Defective(workerType, seq, f.first)
	}
	inform(&r, open(nil))
	return r.Cleaned()
}

// inform reads the fields that are for information only.
func inform(r *store.Record, d Source) {
	r.Priority = int(d.Whole(Priority))
	r.SlotStart, r.SlotEnd = d.Time(SlotStart, false), d.Time(SlotEnd, false)
	r.FixedAt, r.DoneUntil = d.Time(FixedAt, false), d.Time(DoneUntil, false)
	// A value out of bounds must stay so where an int has 32 bits.
	r.Attempt = int(min(max(d.Whole(Attempt), -1), store.MaxAttempt+1))
	r.Spared = int(min(max(d.Whole(Spared), -1), store.MaxAttempt+1))
	r.Schedule, r.Metadata = d.Text(Schedule, false, math.MaxInt), d.Text(Metadata, false, math.MaxInt)
	r.Work = d.Text(Work, false, math.MaxInt)
	r.Orders, r.Done = d.Text(Orders, false, math.MaxInt), d.Text(Done, false, math.MaxInt)
	if w := d.Part(Worker); w != nil {
		r.Worker.Host, r.Worker.Version = w.Text("host", false, math.MaxInt), w.Text("version", false, math.MaxInt)
		r.Worker.PID = int(w.Whole("pid"))
	}
}

// Defective returns the record of a document that can't be decoded.
func Defective(workerType string, seq int64, err error) store.Record {
	return store.Record{WorkerType: workerType, Seq: seq, Defect: fault.OneLine(err.Error())}
}

// SeqOf returns the Seq in a document's id, if the id is a key that can be
// followed.
func SeqOf(workerType, id string) (int64, bool) {
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
