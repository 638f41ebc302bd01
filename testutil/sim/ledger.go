package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
)

// landed is the world's lasting memory of a grant.
type landed struct {
	instance, group string
	host            string // of its worker
	claim           string
	order           int       // of landing, or unordered
	end             time.Time // of its window, and of those that extend it
	first, seq      int64     // of the oldest and the newest of them
}

// land notes a grant: another window of its term, or a new one.
func (l *ledger) land(r store.Record, order int) {
	for _, g := range l.byToken[r.Token] {
		if g.claim == r.Claim && g.end.Equal(r.WindowStart) {
			g.end, g.seq = r.WindowEnd, r.Seq
			return
		}
	}
	l.byToken[r.Token] = append(l.byToken[r.Token], &landed{r.InstanceID, r.Group, r.Worker.Host, r.Claim, order, r.WindowEnd, r.Seq, r.Seq})
}

// unordered is the order of a record that landed below the head, where a rollback had left a
// hole. It is neither earlier nor later than the records above it.
const unordered = -1

// ledger is that of one worker type, with its past.
type ledger struct {
	records
	first    map[int64]string        // the claim that came first to a key, for ever
	byToken  map[int64][]*landed     // the grants that came first to their keys
	landedAt map[int64]time.Duration // when a key was taken first
	resetAt  time.Duration           // when poison was superseded last
	hung     []hung
	minority map[int64]time.Duration // keys that a minority had, and since which election
	undone   []undone
	losses   []loss
	order    int
	jobs     jobs
	told     map[string]int64 // the keys of outcomes, by their writer and text
}

func (w *world) ledger(workerType string) *ledger {
	l := w.ledgers[workerType]
	if l == nil {
		l = &ledger{first: map[int64]string{}, byToken: map[int64][]*landed{}, landedAt: map[int64]time.Duration{}, minority: map[int64]time.Duration{}}
		w.ledgers[workerType] = l
	}
	for ttl := w.o.Faults.TTL; ttl > 0 && len(l.list) > 0 && w.time(l.list[0].WindowEnd)+ttl < w.now(); {
		w.tally.strike(Expiry)
		l.remove(l.list[0].Seq)
	}
	return l
}

// hung is an append on its way to a key. It arrives at the worst moment: when trimming has
// freed the key.
type hung struct {
	seq  int64
	land func(after time.Duration)
}

// hang keeps an append on its way.
func (w *world) hang(k *link, effect func(time.Duration, *call) error, o op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.ledger(o.workerType)
	l.hung = append(l.hung, hung{o.seq, func(d time.Duration) { k.land(d, effect) }})
}

// append inserts a record and checks it.
func (w *world) append(p *Process, r store.Record, at time.Duration, c *call) error {
	return w.appendAfter(p, r, nil, at, c)
}

// appendAfter is append right above prev, unless that is nil.
func (w *world) appendAfter(p *Process, r store.Record, prev *store.Record, at time.Duration, c *call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.ledger(r.WorkerType)
	if _, taken := l.get(r.Seq); prev != nil && !taken {
		if below, _ := l.get(prev.Seq); below.Defect != "" || !store.SameRecord(below, *prev) {
			return fmt.Errorf("sim: append %s: %w", store.Key(r.WorkerType, r.Seq), store.WentBack(*prev))
		}
	}
	if !l.insert(r) {
		return fmt.Errorf("sim: append %s: %w", store.Key(r.WorkerType, r.Seq), store.ErrConflict)
	}
	if r.WorkerType == store.Sightings {
		return nil
	}
	w.audit(p, l, r, at)
	w.hint(r)
	if c.rollback {
		w.later(p, rollbackLane, c.rand.span(100*time.Millisecond, time.Minute), func() { w.rollBack(r) })
	}
	return nil
}

// rollBack takes a record back, if none was appended after it.
func (w *world) rollBack(r store.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.ledger(r.WorkerType); l.head().Claim == r.Claim {
		w.tally.strike(Rollback)
		l.remove(r.Seq)
		l.undone = append(l.undone, undone{w.now(), r})
		delete(l.first, r.Seq)
	}
}

func (w *world) get(workerType string, seq int64, c *call) (store.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.ledger(workerType)
	r, ok := l.get(seq)
	if ok && c.hidden > 0 && seq > l.head().Seq-int64(c.hidden) {
		w.tally.strike(StaleRead)
		ok = false
	}
	if !ok {
		return store.Record{}, fmt.Errorf("sim: get %s: %w", store.Key(workerType, seq), store.ErrNotFound)
	}
	return r, nil
}

func (w *world) tail(workerType string, limit int, c *call) []store.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.ledger(workerType)
	if c.hidden > 0 && len(l.list) > 0 {
		w.tally.strike(StaleRead)
	}
	return l.tail(limit, c.hidden)
}

func (w *world) workerTypes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.ledgers))
}

// trim deletes old records. It checks that a later record justifies it, because its writer
// read the ledger a retention ago.
func (w *world) trim(p *Process, workerType string, before int64, at time.Duration) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.ledger(workerType)
	if workerType == store.Sightings {
		return l.trim(before)
	}
	oldest := at - p.options.Retention
	justified := false
	for i, _ := l.find(before); i < len(l.list) && !justified; i++ {
		r := l.list[i].ReadAt
		justified = !r.IsZero() && r.Sub(w.origin) <= oldest
	}
	if !justified && len(w.server.wrong) == 0 && w.o.Faults.FirstStamps == 0 {
		w.violate("%v trims below seq %d, and no later record was made %v ago", p, before, p.options.Retention)
	}
	n := l.trim(before)
	for i := len(l.hung) - 1; i >= 0; i-- {
		if _, stands := l.get(l.hung[i].seq); !stands && l.hung[i].seq < before {
			l.hung[i].land(time.Duration(i+1) * time.Millisecond)
			l.hung = slices.Delete(l.hung, i, i+1)
		}
	}
	if n > 0 {
		w.tally.strike(Trim)
		if left := l.head().Seq - before + 1; left < keep {
			w.violate("%v trims below seq %d and leaves %d keys", p, before, left)
		}
	}
	return n
}

// keep is the number of keys that must stay, of any age.
const keep = 100

// audit checks a record that has just landed against the one before it.
func (w *world) audit(p *Process, l *ledger, r store.Record, at time.Duration) {
	l.order++
	if _, again := l.first[r.Seq]; again {
		// The key was trimmed meanwhile, and no worker works under this late record.
		w.tally.strike(LandedOnTrim)
		return
	}
	l.first[r.Seq], l.landedAt[r.Seq] = r.Claim, at
	if r.Kind == store.KindGrant {
		order := l.order
		if r.Seq < l.head().Seq {
			order = unordered
		}
		l.land(r, order)
		if r.WorkerType == p.options.WorkerType && r.WindowEnd.After(p.reach) {
			p.reach = r.WindowEnd
		}
	}
	w.auditLost(p, l, r, at)
	if w.o.Faults.Rollback > 0 || w.o.Faults.Losses > 0 {
		return // what the writer read may be gone
	}
	if _, ever := l.first[r.Seq-1]; r.Seq > 1 && !ever {
		w.violate("seq %d of %v leaves out a key", r.Seq, p)
	}
	before, ok := l.below(r.Seq)
	for ; ok && w.planted[before.Claim]; before, ok = l.below(before.Seq) {
		// Poison ends no term: the record below it is in force.
		if r.Kind != store.KindReset {
			w.violate("seq %d of %v, of kind %s, obeys the poison in seq %d", r.Seq, p, r.Kind, before.Seq)
		}
	}
	if !ok || l.first[before.Seq] != before.Claim {
		return // the beginning, or not what the writer read
	}
	w.auditWork(p, r, before)
	w.auditOutcome(p, l, r, before)
	w.auditOrders(p, r, before, at)
	w.awaitHeard(p, l, r, before, at)
	if r.Kind == store.KindReset {
		l.resetAt = at
	}
	if r.Kind == store.KindGrant {
		w.auditPassed(p, l, r, before, at)
	}
	l.noteDone(r, before, at)
	switch r.Kind {
	case store.KindOverride:
		w.violate("seq %d of %v overrides, as only an operator may", r.Seq, p)
	case store.KindGrant:
		if r.WindowStart.Before(before.WindowEnd) {
			w.violate("seq %d of %v starts at %v, before seq %d ends at %v", r.Seq, p, w.time(r.WindowStart), before.Seq, w.time(before.WindowEnd))
		}
		if r.WindowStart.After(before.WindowEnd) && at < w.time(before.WindowEnd) && !w.beyond {
			w.violate("seq %d of %v leaves a gap after seq %d, whose window ends at %v only", r.Seq, p, before.Seq, w.time(before.WindowEnd))
		}
		if r.Claim == before.Claim && before.Kind != store.KindRelease {
			if r.Token != before.Token || !r.WindowStart.Equal(before.WindowEnd) || r.InstanceID != before.InstanceID || r.Group != before.Group {
				w.violate("seq %d of %v extends seq %d, and is not the same term", r.Seq, p, before.Seq)
			}
			break
		}
		if r.Token <= before.Token || r.Token < r.WindowStart.UnixMilli() {
			w.violate("seq %d of %v has token %d, after %d, for a window from %d", r.Seq, p, r.Token, before.Token, r.WindowStart.UnixMilli())
		}
	case store.KindRelease:
		if r.Claim != before.Claim || r.Group != before.Group || r.Token != before.Token || !r.WindowStart.Equal(r.WindowEnd) || r.WindowEnd.After(before.WindowEnd) ||
			r.Group != "" || before.Kind == store.KindRelease || r.WindowStart.UnixMilli() <= before.Token {
			w.violate("seq %d of %v releases a term that is not in seq %d", r.Seq, p, before.Seq)
		}
	default:
		if slices.Contains(bookkeeping, r.Kind) && (r.Claim != before.Claim || r.Token != before.Token || r.Group != before.Group || r.InstanceID != before.InstanceID) {
			w.violate("seq %d of %v, of kind %s, takes the term in seq %d", r.Seq, p, r.Kind, before.Seq)
		}
		// When the store's clock was set back, what is far ahead is poison.
		ahead := (len(w.server.jumps) > 0 || w.o.Faults.FirstStamps > 0) && r.Kind == store.KindReset && !before.WindowStart.Before(r.ReadAt.Add(2*priority.MaxLead))
		if !r.WindowStart.Equal(r.WindowEnd) || !ahead && (r.WindowEnd.Before(before.WindowEnd) || r.Token < before.Token) {
			w.violate("seq %d of %v, of kind %s, changes the term in seq %d", r.Seq, p, r.Kind, before.Seq)
		}
	}
}

// bookkeeping are the kinds of records that workers and operators write, and that change no term.
var bookkeeping = []store.Kind{store.KindDone, store.KindOutcome, store.KindOrder}
