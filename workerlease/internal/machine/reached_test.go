package machine_test

import (
	"slices"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// poison reports that a head can't be obeyed.
func (w *watcher) poison(head store.Record, at machine.Moment) bool {
	return head.Seq != 0 && (head.Check() != nil || head.WindowStart.After(at.Now.Latest.Add(w.m.Rules.Ahead)) &&
		(head.WindowStart.Before(head.WindowEnd) || head.WindowStart.After(at.Now.Latest.Add(w.m.Rules.Ahead+w.m.Rules.Longest))))
}

// reached leaves out poison above free keys.
func (w *watcher) reached(records []store.Record, at machine.Moment) []store.Record {
	for i := len(records) - 1; i >= 0; i-- {
		if slices.ContainsFunc(records[:i+1], func(r store.Record) bool {
			return w.m.Rules.Poison(r, at.Now, w.m.Rules.Ahead, w.m.Rules.Longest) == nil
		}) {
			continue
		}
		below := int64(0)
		if i+1 < len(records) {
			below = records[i+1].Seq
		}
		if records[i].Seq != below+1 && (below > 0 || records[i].Seq <= w.m.Rules.Keep) {
			return records[i+1:]
		}
	}
	return records
}
