package sim

import (
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
)

// answer is an answer of the store to a process. Durations are true time.
type answer struct {
	sent time.Duration // when the process asked
	left time.Duration // when the store answered
	at   time.Duration // when it arrived
	// The content: a time, unless it is zero, and records of the ledger.
	stamp store.Stamp
	read  bool
	shown []store.Record // newest first
}

// answers are the answers that a process got, the claims that it sent, and when its observer
// kept it from acting on them. They are kept only beyond the assumptions.
type answers struct {
	mu   sync.Mutex
	had  []answer
	own  map[string]bool // the claims that it sent
	kept []Span
	// If the store loses records: those that it was shown or has appended, and when the first answer came from.
	known map[seen]bool
	began time.Duration
}

// hears notes an answer.
func (p *Process) hears(a answer) {
	if !p.world.beyond {
		return
	}
	a.at = p.world.now()
	p.answers.mu.Lock()
	defer p.answers.mu.Unlock()
	p.answers.had = append(p.answers.had, a)
}

// claims notes a claim on its way.
func (p *Process) claims(claim string) {
	if !p.world.beyond {
		return
	}
	p.answers.mu.Lock()
	defer p.answers.mu.Unlock()
	if p.answers.own == nil {
		p.answers.own = map[string]bool{}
	}
	p.answers.own[claim] = true
}

// keeps notes that the observer keeps the process.
func (p *Process) keeps(from, to time.Duration) {
	if !p.world.beyond {
		return
	}
	p.answers.mu.Lock()
	defer p.answers.mu.Unlock()
	p.answers.kept = append(p.answers.kept, Span{from, to})
}

// minded is by when a process that got an answer has reported what follows from it: after two
// seconds in which it runs and its observer doesn't keep it.
func (p *Process) minded(at time.Duration) time.Duration {
	const processing = 2 * time.Second
	p.answers.mu.Lock()
	defer p.answers.mu.Unlock()
	by := p.host.stalls.resume(at + processing)
	for _, k := range p.answers.kept {
		if k.To > at && k.From <= by {
			by = max(by, p.host.stalls.resume(k.To+processing))
		}
	}
	return by
}

// times are the answers with a time that came after the witness had worked, up to the first
// from another server, by which the engine goes from then on, or up to a later fault.
func (x witness) times() (out []answer) {
	server := ""
	for _, a := range x.p.answers.had {
		switch {
		case a.stamp.IsZero():
		case a.at <= x.at:
			server = a.stamp.Server
		case len(out) > 0 && x.wrongAgain(a):
			return out
		default:
			if out = append(out, a); a.stamp.Server != server {
				return out
			}
		}
	}
	return out
}

// wrongAgain reports whether the store's clock jumped or the host froze between the witness's
// work and an answer.
func (x witness) wrongAgain(a answer) bool {
	again := func(s outage) bool { return (s.kind == Jump || s.kind == Freeze) && s.from > x.at && s.from <= a.at }
	return slices.ContainsFunc(x.p.world.server.jumps, again) || slices.ContainsFunc(x.p.host.stalls, again)
}

// reads are the answers with records that came after the witness had worked.
func (x witness) reads() (out []answer) {
	for _, a := range x.p.answers.had {
		if a.read && a.at > x.at {
			out = append(out, a)
		}
	}
	return out
}

// perDrift is the inverse of the largest drift that the engine expects of its clock.
const perDrift = 1000

// refuted reports whether an answer shows that the witness was not inside its window when it
// worked, because the window was over or had not begun. It assumes that the witness's clock
// has been right since.
func (x witness) refuted(a answer) bool {
	w, local, s := x.p.world, x.p.host.reading, a.stamp
	since := local(a.at) - local(x.at)
	off := since/perDrift + time.Microsecond
	told := w.time(s.Time) - since // when it worked
	latest := told + s.Granularity + s.MaxAge + s.Skew + local(a.at) - local(a.sent) + off
	return told-s.Skew-off > x.window.To || latest < x.window.From
}

// missed reports whether an answer contradicts the witness's record: another record stands in
// its place, a grant above it begins before it ends, or no record is as new.
func (x witness) missed(a answer) bool {
	r := x.record
	if r == nil {
		return false
	}
	for _, o := range a.shown {
		if o.Claim != r.claim && (o.Seq == r.seq || o.Seq > r.seq && o.Kind == store.KindGrant && o.WindowStart.Before(r.end)) {
			return true
		}
	}
	return len(a.shown) == 0 || a.shown[0].Seq < r.seq
}
