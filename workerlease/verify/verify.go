package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Options of New.
type Options struct {
	// WorkerType is that of the ledger. Required.
	WorkerType string
	// Now is the store's time, read when the ledger was read or later, and Uncertainty how far it may
	// be off. With an earlier time, sound records may seem to be too far ahead. Now is required.
	Now         time.Time
	Uncertainty time.Duration
	// Retention is how long the workers keep records. Default: 2 h, the least that they can keep them.
	Retention time.Duration
}

const (
	// lookBack is how many of the newest records are kept, by which a record is judged, and with
	// room how many there are before the older ones are dropped.
	lookBack, room = 256, 4096
	// most is how many records are kept that nothing has superseded yet, or that are above a free
	// key. Those beyond it count as gone by.
	most = 1024
	// remembered is how many claims are remembered, to see one that is used again.
	remembered = 1024
)

// Verifier checks the ledger of one worker type. It is not safe for concurrent use.
type Verifier struct {
	o      Options
	latest time.Time
	report Report
	found  found

	// newest are the newest records, newest first, of those that aren't above a free key. They are
	// the end of buffer.
	newest, buffer []store.Record
	// head is the newest record that can be obeyed, the zero Record if there is none.
	head store.Record
	// released is the Seq of the release by which the term in head is over; 0 if it isn't.
	released int64
	// pending are the records since head that can't be obeyed.
	pending []pending
	// above are the newest records, which are above a free key, oldest first, and free whether those
	// below them were trimmed while the ledger was read.
	above   []store.Record
	trimmed bool

	claims claims
	keys   keys
	slots  slotted
	losses losses
}

// New returns a Verifier for the ledger of one worker type.
func New(o Options) *Verifier {
	if o.Retention == 0 {
		o.Retention = machine.MinRetention
	}
	return &Verifier{
		o: o, latest: o.Now.Add(o.Uncertainty), found: found{}, report: Report{WorkerType: o.WorkerType},
		claims: newClaims(), keys: keys{early: found{}}, slots: newSlotted(),
	}
}

// Trimmed says that the records between the newest that was added and the next one were trimmed
// while the ledger was read, so that their keys are no gap.
func (v *Verifier) Trimmed() { v.trimmed = true }

// Unreachable takes the record with Seq 0 by which [store.Ledger.Tail] reports keys that can't be
// followed.
func (v *Verifier) Unreachable(r store.Record) {
	v.find(UnreachableKey, r, "There is a key that no worker can follow: %s.", r.Defect)
}

// Add takes the next record, as [store.Pager] returns it.
func (v *Verifier) Add(r store.Record) {
	if v.report.Records++; v.report.First == 0 {
		v.report.First = r.Seq
	}
	last := v.last()
	switch {
	case last != 0 && r.Seq <= last:
		v.find(KeyOutOfOrder, r, "The record comes after record %d.", last)
		return
	case last != 0 && r.Seq > last+1 && !v.trimmed, len(v.above) > 0:
		v.climb(r)
	default:
		if last != 0 && r.Seq > last+1 {
			v.goneBy()
			v.forget()
		}
		v.take(r)
	}
	v.trimmed = false
	v.report.Last = r.Seq
}

// forget begins anew above records that are missing: what is below says nothing of what is above.
func (v *Verifier) forget() {
	v.slots.tellFailed(v)
	v.losses.judge(v)
	v.newest, v.head, v.claims, v.slots, v.losses = nil, store.Record{}, newClaims(), newSlotted(), losses{}
	v.buffer, v.released = nil, 0
}

// last is the Seq of the newest record that was added.
func (v *Verifier) last() int64 { return v.report.Last }

// take judges a record that workers follow.
func (v *Verifier) take(r store.Record) {
	if v.isSeam(r) {
		v.goneBy()
		v.forget()
	}
	v.push(r)
	v.keys.take(r)
	if r.Defect == "" && r.WorkerType != v.o.WorkerType {
		v.find(OtherWorkerType, r, "The record is one of the worker type %q.", r.WorkerType)
	}
	if why := ledger.At(v.latest).Defect(v.newest); why != nil {
		if v.besideLate(r) {
			v.apart()
			v.take(r)
			return
		}
		v.postpone(r, why)
		return
	}
	switch r.Kind {
	case store.KindReset:
		v.reset(r)
	case store.KindOverride:
		v.supersede(r)
		v.find(OverrideSeen, r, "An operator, %q, ended what was in force at %s.", r.InstanceID, store.Format(r.WindowStart))
	default:
		v.goneBy()
	}
	v.obeyed(r)
	v.head = r
}

// push adds a record to the newest.
func (v *Verifier) push(r store.Record) {
	if len(v.buffer) == len(v.newest) {
		kept := v.newest[:min(len(v.newest), lookBack)]
		v.buffer = make([]store.Record, room)
		v.newest = v.buffer[room-len(kept):]
		copy(v.newest, kept)
	}
	// newest grows toward the beginning of buffer.
	at := len(v.buffer) - len(v.newest) - 1
	v.buffer[at] = r
	v.newest = v.buffer[at:]
}

// postpone keeps what is wrong with a record until it is known whether workers went by it.
func (v *Verifier) postpone(r store.Record, why error) {
	if len(v.pending) == most {
		v.goneBy()
	}
	code := codeOf[ledger.Broken(why)]
	dated := r.Kind == store.KindReset && !r.ReadAt.IsZero() && ledger.At(r.ReadAt).Defect(v.newest) == nil
	f := v.finding(code, r, "Workers can't obey the record: %s.", line(why))
	// One that was made up names no such times: it would be sound by them.
	if at := later(r.ReadAt, r.FixedAt); at.After(v.latest.Add(v.slack())) && ledger.At(at).Defect(v.newest) == nil {
		f.Text += fmt.Sprintf(" It is sound by the times of its writer, who read %s from the store's clock: that was set back since, most likely.", store.Format(at))
		f.Remedy = setBack
	}
	v.pending = append(v.pending, pending{f, dated})
}

// pending is what is wrong with a record, and whether it is a reset that is sound by the time of its
// writer: then the store's clock may have been set back.
type pending struct {
	Finding
	dated bool
}

// goneBy adds what is pending: records that break a rule, and that workers went on above. Above a reset
// which is wrong by any clock, they would have appended another.
func (v *Verifier) goneBy() {
	for _, p := range v.pending {
		if p.dated {
			p.Severity = Warning
			p.Text += " It was sound by the clock of its writer, and workers went on above it: the store's clock was set back."
		}
		v.found.add(p.Finding)
	}
	v.pending = v.pending[:0]
}

// supersede adds what is pending: records that no worker obeyed.
func (v *Verifier) supersede(by store.Record) {
	for _, p := range v.pending {
		v.found.add(superseded(p.Finding, by))
	}
	v.pending = v.pending[:0]
}

func superseded(f Finding, by store.Record) Finding {
	f.Severity, f.SupersededBy = Warning, by.Seq
	f.Text += fmt.Sprintf(" Record %d supersedes it.", by.Seq)
	return f
}

// reset looks at what a reset supersedes.
func (v *Verifier) reset(r store.Record) {
	if len(v.pending) == 0 && len(v.newest) > 1 {
		below := v.newest[1]
		if why := ledger.At(v.latest).PassedOver(v.newest); why != nil {
			v.found.add(superseded(v.finding(codeOf[ledger.Broken(why)], below, "Workers could not obey the record: %s.", line(why)), r))
		} else {
			v.find(ResetOfSound, r, "The record resets the ledger, and record %d can be obeyed.", below.Seq)
		}
	}
	v.supersede(r)
	v.find(ResetSeen, r, "A worker, %q, reset the ledger as of %s.", r.InstanceID, store.Format(r.WindowStart))
	if since := v.soundBelow(r); !since.IsZero() && !r.ReadAt.IsZero() {
		// What it supersedes was appended later than that, and both times are the latest that they can be.
		if watched := r.ReadAt.Sub(since); watched >= 0 && watched < ledger.Standard.Patience-v.slack() {
			v.find(ResetTooEarly, r, "The record resets the ledger %v after the newest record below that can be obeyed, and workers wait for at least %v.", watched, ledger.Standard.Patience)
		}
	}
}

// soundBelow is when the head was read for the newest record below a reset that its writer obeyed.
func (v *Verifier) soundBelow(reset store.Record) time.Time {
	for i := 1; i < len(v.newest); i++ {
		with := append([]store.Record{reset}, v.newest[i:min(i+8, len(v.newest))]...)
		if ledger.At(v.latest).PassedOver(with) == nil {
			return v.newest[i].ReadAt
		}
	}
	return time.Time{}
}

// slack is how far two readings of store time may be apart that different workers took at one moment.
func (v *Verifier) slack() time.Duration { return 2*v.o.Uncertainty + slack }

// slack is for what isn't known of the workers' own uncertainty.
const slack = 2 * time.Second

// finding is one of a code.
func (v *Verifier) finding(c Code, r store.Record, format string, args ...any) Finding {
	return Finding{Code: c, Severity: rules[c].severity, Seq: r.Seq, Text: fmt.Sprintf(format, args...), Remedy: rules[c].remedy}
}

// find adds a finding.
func (v *Verifier) find(c Code, r store.Record, format string, args ...any) {
	v.found.add(v.finding(c, r, format, args...))
}

// Report is what was found so far. It can be asked for again and again.
func (v *Verifier) Report() *Report {
	w := *v
	w.found, w.pending, w.above = v.found.clone(), slices.Clone(v.pending), slices.Clone(v.above)
	for _, p := range w.pending {
		w.found.add(p.Finding)
	}
	w.losses.judge(&w)
	w.left()
	w.keys.judge(&w)
	w.slots.judge(&w)
	w.blocked()
	w.losses.mayHaveHad(w.found)
	w.found.into(&w.report)
	return &w.report
}
