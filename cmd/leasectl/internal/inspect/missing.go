package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Missing is what a worker says of a slot that nobody had. Its names don't change.
type Missing struct {
	InstanceID string `json:"instanceId"`
	Reason     string `json:"reason"`
}

// reasons are why slots were missed, by their starts: as workers in the roster say of these very slots. A
// row of several slots has only what is said of all of them. The roster is for information: if it can't be
// read, there are none.
func reasons(ctx context.Context, l store.Ledger, workerType string, rows []history.Entry) map[time.Time][]Missing {
	missed := func(e history.Entry) bool { return e.State == history.Missed }
	if workerType == "" || !slices.ContainsFunc(rows, missed) {
		return nil
	}
	presences, _ := rosterOf(ctx, l, workerType)
	found := map[time.Time][]Missing{}
	for _, e := range rows {
		for _, p := range presences {
			why, nobody := strings.CutPrefix(p.Missed, "nobody had it: ")
			about := !p.MissedFrom.IsZero() && !p.MissedFrom.After(e.Slot.Start) && !p.MissedUntil.Before(e.Slot.End)
			if missed(e) && nobody && about {
				found[e.Slot.Start] = append(found[e.Slot.Start], Missing{p.InstanceID, why})
			}
		}
	}
	return found
}

// mayBegin makes the newest entry that of a free slot, if it is skipped so far, and may yet be begun, by what the workers that are
// there say of their job.
func mayBegin(rows []history.Entry, crew func() []store.Presence, now time.Time) {
	n := len(rows)
	if n == 0 || rows[n-1].State != history.Skipped || !rows[n-1].Slot.Contains(now) {
		return
	}
	there := slices.DeleteFunc(crew(), func(p store.Presence) bool { return !workerlease.StandingOf(p, rows, now).There() })
	if e := rows[n-1]; e.MayBegin(rows, jobOf(there), now) {
		rows[n-1] = history.Entry{Slot: e.Slot, State: history.Free, Count: 1}
	}
}

// SaysLost reports that a worker claimed nothing in its newest slot because the store has lost records, or may have.
func SaysLost(p store.Presence) bool {
	return strings.HasSuffix(p.Missed, string(workerlease.StoreWentBack))
}

// SayLost names the workers that are there and say that the store has lost records that they had read, or may have. The ledger
// itself says so only once a worker has claimed again.
func SayLost(crew []store.Presence, now time.Time) (names []string) {
	for _, p := range crew {
		if SaysLost(p) && workerlease.IsPresent(p, now) {
			names = append(names, p.InstanceID)
		}
	}
	slices.Sort(names)
	return names
}

// LostText is what such workers say, in a line.
func LostText(names []string) string {
	return fmt.Sprintf("the store has lost records, or may have, so that %s claimed nothing", listed(names))
}

// missingText is what workers say of a slot, in a line.
func missingText(all []Missing) string {
	const most = 3
	var words []string
	for _, m := range all[:min(len(all), most)] {
		words = append(words, m.InstanceID+": "+m.Reason)
	}
	if len(all) > most {
		words = append(words, "…")
	}
	return strings.Join(words, "; ")
}
