package verify

import (
	"fmt"
	"slices"

	"github.com/slotlease/slotlease/store"
)

// Strict lists what is wrong with a whole ledger whose writers are all known, as in a test, in a
// line each: faults, and what such workers had no reason to write, as a reset, or to leave out.
// The records are all of one worker type, the oldest first. What only the time shows isn't judged.
func Strict(records []store.Record) (problems []string) {
	if len(records) == 0 {
		return nil
	}
	v := New(Options{WorkerType: records[0].WorkerType})
	for _, r := range records {
		v.latest = later(v.latest, later(r.WindowEnd, later(r.ReadAt, r.FixedAt)))
	}
	v.o.Now = v.latest
	whole := map[string]bool{} // versions of workers that say which slot is done; earlier ones only say when it ends
	for _, r := range records {
		whole[r.Worker.Version] = whole[r.Worker.Version] || r.Done != ""
	}
	var below store.Record
	for _, r := range records {
		if why := unprovoked(r, below, whole[r.Worker.Version]); why != "" {
			problems = append(problems, fmt.Sprintf("record %d: %s", r.Seq, why))
		}
		v.Add(r)
		below = r
	}
	for _, f := range v.Report().Findings {
		if f.Severity == Fault || f.Code == AboveFreeKey || f.Code == UnknownKind {
			problems = append(problems, fmt.Sprintf("record %d: %s: %s", f.Seq, f.Code, f.Text))
		}
	}
	return problems
}

// unprovoked is what a record says or leaves out although no worker had a reason, where whole says that its writer knows all that there is
// to say; empty if there is nothing.
func unprovoked(r, below store.Record, whole bool) string {
	_, tells := r.Outcome()
	_, lost := r.Lost()
	switch {
	case slices.Contains([]store.Kind{store.KindReset, store.KindOverride, store.KindOrder, store.KindSighting}, r.Kind):
		return "of kind " + string(r.Kind) + ", which no worker had a reason to write"
	case whole && r.Defect == "" && below.Done != "" && r.Done == "":
		return "forgets the newest slot that is done, " + below.Done
	case r.Kind == store.KindDone && r.Attempt == 0:
		return "is done, but no job of a slot"
	case !tells && !lost && (r.Kind == store.KindOutcome || r.Kind == store.KindDone && r.Metadata != ""):
		return fmt.Sprintf("tells no outcome: %.100q", r.Metadata)
	}
	return ""
}
