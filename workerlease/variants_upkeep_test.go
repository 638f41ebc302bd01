package workerlease_test

import (
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// upkeepVariants are careless about trimming the ledger, and about what is found
// in it.
var upkeepVariants = []variant{
	// w0 has read the head, and is cut off for three quarters of an hour before it
	// appends. The head has expired by then, its key is free again, and others have
	// gone on from seq 1.
	{name: "the store deletes the head when it is old", rule: "the head stays", regime: expiring},
	// w0 claims the rest of a day with seq 1, and is cut off before that lands. Others
	// go on with slots of 10 s, and trim all that are over. When w0 is back, it sends
	// seq 1 again, which lands, and works beside the others.
	{name: "a record that has expired may go", rule: "TrimBelow", regime: brieflyCutOff, broken: trimming, instead: func(g store.Record, now timeline.Interval, _ time.Duration) int64 {
		if g.CheckEnvelope() != nil || now.Earliest.Before(g.WindowEnd) {
			return 0
		}
		return g.Seq
	}},
	// The same: w0 is back after three quarters of an hour, and a claim may be worked
	// under for an hour.
	{name: "records are kept for half an hour", rule: "TrimBelow", regime: brieflyCutOff, broken: trimming, instead: func(g store.Record, now timeline.Interval, _ time.Duration) int64 {
		return standard.TrimBelow(g, now, 30*time.Minute)
	}},
	// A record of another version doesn't say when its writer read the head. It is
	// new, as are those below it, which all go.
	{name: "a record that doesn't say when it was made is old", rule: "TrimBelow", regime: newerVersions, broken: trimming, instead: func(g store.Record, now timeline.Interval, retention time.Duration) int64 {
		if g.ReadAt.IsZero() && g.CheckEnvelope() == nil {
			return g.Seq
		}
		return standard.TrimBelow(g, now, retention)
	}},
	// In a long outage w0's append hangs, and lands after an hour. w1 has read the head
	// right before that. In another hour w0's record is trimmed by its own age; w1's
	// append, which is half as old, lands at its key, and w1 works.
	{name: "a record that is old enough goes itself", rule: "TrimBelow", regime: edgeOfTrimming, broken: trimming, instead: func(g store.Record, now timeline.Interval, retention time.Duration) int64 {
		if seq := standard.TrimBelow(g, now, retention); seq > 0 {
			return seq + 1
		}
		return 0
	}},
	// w1 reads the head, and says that it did so a minute ago. So what landed in that
	// minute counts as older than it is.
	{name: "a head was read when the claim was made", rule: "Record.ReadAt", regime: anything, around: sending(func(r *store.Record) {
		r.ReadAt = r.ReadAt.Add(-time.Minute)
	})},
	// Somebody looks what happened an hour ago, and finds ten records.
	{name: "ten records are enough to look back on", rule: "Keep", regime: anything, broken: func(r *machine.Rules) { r.Keep, r.TrimEvery = 10, 1 }},
	// w0 works. Something that isn't a record comes into the ledger. w1 sees no window
	// in it, and takes the slot.
	{name: "what can't be read is free", rule: "Poison", regime: poisoned, instead: func(head store.Record, now timeline.Interval, ahead, longest time.Duration) error {
		if head.Defect != "" {
			return nil
		}
		return standard.Poison(head, now, ahead, longest)
	}},
	// w0 works. A record comes into the ledger whose token is that of next year, and
	// whose window ends in a minute. w1 obeys it, and works when that is over.
	{
		name: "whatever has a window is obeyed", rule: "Ahead, Longest", regime: poisoned,
		broken: func(r *machine.Rules) { r.Ahead, r.Longest = 1e6*time.Hour, 1e6*time.Hour },
	},
	// w0 has a slot of 35 min. Something that isn't a record comes into the ledger.
	// w1, with slots of a minute, watches it for a while, and starts anew.
	{name: "poison ends the term below it", rule: "Reset", regime: mixedPoison, instead: func(_ store.Record, now timeline.Interval) (time.Time, int64) {
		return standard.Reset(store.Record{}, now)
	}},
}
