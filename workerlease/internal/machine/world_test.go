package machine_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// eve is when the worlds begin: local reading 0 on the first clock.
var eve = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

var errTimeout = os.ErrDeadlineExceeded

// world is what a machine finds around it: a store with a clock and a ledger,
// and user code.
type world struct {
	*watcher
	local   time.Duration
	clocks  []time.Time   // store time at the local reading 0, by epoch
	spread  time.Duration // half the width of the interval
	known   bool
	sampled time.Duration
	jumps   int
	began   time.Duration // the local reading at which the newest clock began
	draw    [12]byte      // the first bytes of each draw; the rest is a counter
	draws   uint32

	ledger  map[int64]store.Record
	sighted map[int64]time.Time
	op      machine.Action // under way
	adrift  []store.Record // appends that were not applied yet
	gone    []store.Record // that the store has lost, or trimmed
	log     []machine.Action
	landed  map[int64]int        // by key: after how many others the newest record there has landed
	asked   map[store.Record]int // how many had landed when it was sent first
	lands   int                  // how many have landed
	with    machine.Moment       // what each moment has besides the time
	takes   time.Duration        // what operations take, as it is told: no time passes
	late    bool                 // right before the user's code it turns out to be too late
	alone   bool                 // or that nobody waits for it
}

// plain is the configuration of a worker with slots of 5 min and all defaults.
func plain() machine.Config {
	rules := machine.Standard
	return machine.Config{
		Rules: &rules, WorkerType: "mail", InstanceID: "w1",
		Schedule: slots.Must(slots.Every(5 * time.Minute)), Margin: 250 * time.Millisecond, Retention: 24 * time.Hour,
		MinBackoff: 100 * time.Millisecond, MaxBackoff: 5 * time.Second, Follows: true,
	}
}

func newWorld(c machine.Config) *world {
	w := &world{
		watcher: newWatcher(machine.Machine{Config: c}, machine.Start(0, 0, 0, false, 0)), clocks: []time.Time{eve}, spread: time.Millisecond,
		ledger: map[int64]store.Record{}, sighted: map[int64]time.Time{}, landed: map[int64]int{}, asked: map[store.Record]int{},
	}
	w.s.View.Arrived = !c.Once // What is read then has traces of its own.
	return w
}

// store is store time, by the newest clock.
func (w *world) time() time.Time { return w.clocks[len(w.clocks)-1].Add(w.local) }

// now is the interval for a reader that is settled up to an epoch.
func (w *world) now(settled int) timeline.Interval {
	if !w.known {
		return timeline.Interval{}
	}
	i := timeline.Interval{Earliest: w.time(), Latest: w.time()}
	for _, c := range w.clocks[min(settled, len(w.clocks)-1):] {
		at := c.Add(w.local)
		if at.Before(i.Earliest) {
			i.Earliest = at
		}
		if at.After(i.Latest) {
			i.Latest = at
		}
	}
	i.Earliest, i.Latest = i.Earliest.Add(-w.spread), i.Latest.Add(w.spread)
	return i
}

func (w *world) moment() machine.Moment {
	m := w.with
	m.Now, m.Newest, m.Local, m.Age = w.now(w.s.Clock.Settled), w.now(len(w.clocks)-1), w.local, w.local-w.sampled
	m.Epoch, m.Jumps, m.Began = len(w.clocks)-1, w.jumps, w.began
	w.draws++
	copy(m.Draw[:], w.draw[:])
	binary.BigEndian.PutUint32(m.Draw[12:], w.draws)
	return m
}

// turn lets another clock tell the time from here on.
func (w *world) turn(by time.Duration) {
	w.clocks, w.began = append(w.clocks, w.clocks[len(w.clocks)-1].Add(by)), w.local
	w.jumps++
}

// event gives the machine an event, and what follows at once.
func (w *world) event(e machine.Event) error {
	for e != nil {
		actions, err := w.step(w.moment(), e)
		w.log = append(w.log, actions...)
		e = nil
		for _, a := range actions {
			switch a.(type) {
			case machine.Sample, machine.ReadHead, machine.ReadRecord, machine.Append, machine.Trim, machine.Sight:
				w.op = a
				if sent, is := a.(machine.Append); is {
					if _, again := w.asked[sent.Record]; !again {
						w.asked[sent.Record] = w.lands
					}
				}
			case machine.Allocate:
				e = machine.Began{}
				if w.late || w.alone {
					e, w.late, w.alone = machine.Skipped{Unwanted: w.alone}, false, false
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wait lets time pass until the machine's next wait is over, and wakes it. It
// reports false if there is nothing to wait for.
func (w *world) wait() (bool, error) {
	if len(w.m.Waits(&w.s)) == 0 {
		return false, nil
	}
	w.local += max(w.least(), time.Millisecond)
	return true, w.event(machine.Wake{})
}

// least is how long the machine waits at most.
func (w *world) least() time.Duration {
	now, least := w.now(w.s.Clock.Settled), time.Duration(1<<62)
	for _, v := range w.m.Waits(&w.s) {
		d := v.Local - w.local
		if !v.Time.IsZero() {
			d = v.Time.Sub(now.At(v.Edge))
		}
		least = min(least, d)
	}
	return least
}

// goOn lets the store answer, code return whose lease has ended, or time pass.
func (w *world) goOn() error {
	switch {
	case w.op != nil:
		return w.event(w.reply(nil, false, 0))
	case w.running && !w.live:
		return w.event(machine.Returned{})
	}
	_, err := w.wait()
	return err
}

// tail is the ledger without its newest records, newest first.
func (w *world) tail(limit, without int) []store.Record {
	seqs := slices.Sorted(maps.Keys(w.ledger))
	slices.Reverse(seqs)
	var records []store.Record
	if stray, ok := w.ledger[0]; ok {
		records = append(records, stray)
		seqs, limit = seqs[:len(seqs)-1], limit+1
	}
	for _, seq := range seqs[min(without, len(seqs)):] {
		if len(records) == limit {
			break
		}
		records = append(records, w.ledger[seq])
	}
	return records
}

func (w *world) top() int64 {
	return slices.Max(append(slices.Collect(maps.Keys(w.ledger)), 0))
}

// insert puts a record into the ledger unless its key is taken.
func (w *world) insert(r store.Record) error {
	if _, ok := w.ledger[r.Seq]; ok {
		return fmt.Errorf("append: %w", store.ErrConflict)
	}
	w.ledger[r.Seq], w.landed[r.Seq] = r, w.lands
	w.lands++
	return nil
}

// reply does the operation under way and returns what came of it. An err
// replaces the answer; done says whether an append or trim is applied all the
// same. Stale leaves out that many of the newest records.
func (w *world) reply(err error, done bool, stale int) machine.Event {
	op := w.op
	w.op = nil
	switch a := op.(type) {
	case machine.Sample:
		if err == nil {
			w.known, w.sampled = true, w.local
		}
		return machine.Sampled{Err: err, Took: w.takes}
	case machine.ReadHead:
		if err != nil {
			return machine.HeadRead{Err: err, Took: w.takes}
		}
		return machine.HeadRead{Records: w.tail(a.Limit, stale), Took: w.takes}
	case machine.ReadRecord:
		r, ok := w.ledger[a.Seq]
		if err == nil && (!ok || stale > 0) {
			err = fmt.Errorf("get: %w", store.ErrNotFound)
		}
		if err != nil {
			r = store.Record{}
		}
		return machine.RecordRead{Seq: a.Seq, Record: r, Err: err, Took: w.takes}
	case machine.Append:
		switch {
		case err == nil && a.Prev.Seq != 0 && !store.SameRecord(w.ledger[a.Prev.Seq], a.Prev):
			err = store.WentBack(a.Prev)
		case err == nil:
			err = w.insert(a.Record)
		case done:
			_ = w.insert(a.Record) // the error is told all the same
		case errors.Is(err, store.ErrConflict):
			err = errTimeout // no conflict without a record
		default:
			w.adrift = append(w.adrift, a.Record)
		}
		return machine.Appended{Seq: a.Record.Seq, Err: err, Took: max(w.takes, 2*time.Millisecond)}
	case machine.Trim:
		n := 0
		for _, seq := range slices.Sorted(maps.Keys(w.ledger)) {
			if err == nil && seq < a.Before && n < store.TrimBatch {
				w.gone = append(w.gone, w.ledger[seq])
				delete(w.ledger, seq)
				n++
			}
		}
		return machine.Trimmed{Count: n, Err: err}
	case machine.Sight:
		since, known := w.sighted[a.Poison.Seq]
		if !known && (err == nil || done) {
			w.sighted[a.Poison.Seq], since = a.Since, a.Since
		}
		return machine.Sighted{Since: since, Err: err}
	}
	return machine.Wake{}
}

// poison reports that a head can't be obeyed.
func (w *watcher) poison(head store.Record, at machine.Moment) bool {
	return head.Seq != 0 && (head.Check() != nil || head.Kind == store.KindOverride && head.WindowStart.Before(head.WindowEnd) ||
		head.WindowStart.After(at.Now.Latest.Add(w.m.Rules.Ahead)) && (head.WindowStart.Before(head.WindowEnd) || head.Kind == store.KindOverride || head.WindowStart.After(at.Now.Latest.Add(w.m.Rules.Ahead+w.m.Rules.Longest))))
}

// contradicts reports that two records that can be obeyed can't both have been appended by
// workers, as far as they alone show: a reset or an override may have ended more.
func (w *watcher) contradicts(below, r store.Record, at machine.Moment) bool {
	valid := func(r store.Record) bool {
		return w.m.Rules.Poison(r, at.Newest.Latest, w.m.Rules.Ahead, w.m.Rules.Longest) == nil
	}
	if below.Seq == 0 || below.Seq+1 != r.Seq || r.Kind == store.KindReset || r.Kind == store.KindOverride || !valid(below) || !valid(r) {
		return false
	}
	moves := r.WindowStart.Before(below.WindowEnd)
	switch same := r.Claim == below.Claim && r.Group == below.Group && r.Token == below.Token; {
	case r.Kind == store.KindGrant && r.Claim == below.Claim:
		return !same || below.Kind == store.KindRelease || !r.WindowStart.Equal(below.WindowEnd)
	case r.Kind == store.KindGrant:
		return moves || r.Token <= below.Token
	case r.Kind == store.KindRelease:
		return !same || below.Kind == store.KindRelease || !r.WindowStart.Equal(r.WindowEnd) ||
			r.WindowStart.UnixMilli() <= r.Token || r.WindowEnd.After(below.WindowEnd)
	default:
		return !same || moves || !r.WindowEnd.Equal(below.WindowEnd)
	}
}

// reached leaves out records above free keys, as far as the newest records that were asked for
// show them.
func (w *watcher) reached(records []store.Record, asked int, at machine.Moment) []store.Record {
	valid := func(r store.Record) bool {
		return w.m.Rules.Poison(r, at.Newest.Latest, w.m.Rules.Ahead, w.m.Rules.Longest) == nil
	}
	from := 0
	for i, r := range records {
		below := store.Record{}
		if i+1 < len(records) {
			below = records[i+1]
		} else if len(records) >= asked {
			break // There is more below.
		}
		alone := below.Seq == 0 && (valid(r) || r.Seq > w.m.Rules.Keep) && (r.Seq <= 1<<40 || i > 0)
		if r.Seq != below.Seq+1 && !alone {
			from = i + 1
		} else if valid(r) && valid(below) {
			break
		}
	}
	return records[from:]
}
