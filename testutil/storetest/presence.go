package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Presence returns a valid presence with every field set. It is a pure function of its arguments.
// Its times are whole milliseconds.
func Presence(workerType, id string) store.Presence {
	at := time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)
	return store.Presence{
		WorkerType: workerType,
		ID:         id,
		Client:     "client-1",
		InstanceID: "worker " + id,
		Group:      "eu",
		Host:       "host.example",
		PID:        4711,
		Process:    "boot.1.2",
		Version:    "v0.1.0",
		Schedule:   "every 5m0s",
		Work:       "report.sh 1f2e3d4c",
		Job: &store.JobTimes{
			StartWithin: 75 * time.Second, Overrun: "finish", Timeout: time.Hour, CatchUp: "newest", CatchUpWithin: 366 * 24 * time.Hour,
		},
		Labels:         map[string]string{"region": "eu-west-1", "rack": "7"},
		Priority:       3,
		Effective:      5,
		Why:            "it has failed",
		Spreads:        true,
		Phase:          store.PhaseStepping,
		Ineligible:     "its disk is full",
		Score:          new(0.75),
		Missed:         "another was first",
		MissedFrom:     at.Add(-5 * time.Minute),
		MissedUntil:    at,
		Failures:       2,
		FailedIn:       at.Add(-10 * time.Minute),
		StepsBackUntil: at.Add(20 * time.Minute),
		Offset:         -1_500_000_001,
		Uncertainty:    250_003,
		Since:          at.Add(-time.Hour),
		Seen:           at.Add(1234 * time.Millisecond),
		Next:           at.Add(time.Minute),
	}
}

// PresenceFields are the stored fields of a presence, by name, in the form that
// Harness.PlantPresence takes, without those of the key (workerType, id). Those that are empty are left out.
func PresenceFields(p store.Presence) map[string]any {
	fields := map[string]any{
		"instanceId": p.InstanceID, "priority": int64(p.Priority), "effective": int64(p.Effective), "phase": string(p.Phase),
	}
	for name, v := range map[string]any{
		"client": p.Client, "group": p.Group, "host": p.Host, "pid": int64(p.PID), "process": p.Process, "work": p.Work, "version": p.Version, "schedule": p.Schedule,
		"why": p.Why, "spreads": p.Spreads, "ineligible": p.Ineligible, "missed": p.Missed,
		"failures": int64(p.Failures), "offset": int64(p.Offset), "uncertainty": int64(p.Uncertainty),
		"missedFrom": p.MissedFrom, "missedUntil": p.MissedUntil, "failedIn": p.FailedIn, "stepsBackUntil": p.StepsBackUntil, "since": p.Since, "seen": p.Seen, "next": p.Next,
	} {
		if !reflect.ValueOf(v).IsZero() {
			fields[name] = v
		}
	}
	if p.Score != nil {
		fields["score"] = *p.Score
	}
	if j := p.Job; j != nil {
		fields["job"] = map[string]any{
			"startWithin": int64(j.StartWithin), "overrun": j.Overrun, "timeout": int64(j.Timeout), "catchUp": j.CatchUp, "catchUpWithin": int64(j.CatchUpWithin),
		}
	}
	if len(p.Labels) > 0 {
		labels := map[string]any{}
		for name, value := range p.Labels {
			labels[name] = value
		}
		fields["labels"] = labels
	}
	return fields
}

// asRoster skips the test if the store keeps no roster.
func asRoster(t *testing.T, l store.Ledger) store.Roster {
	t.Helper()
	r, ok := store.As[store.Roster](l)
	if !ok {
		t.Skip("the store keeps no roster")
	}
	if _, err := r.Presences(within(t), ""); errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("the store keeps no roster here: %v", err)
	}
	return r
}

// attend stores presences that must be accepted.
func attend(t *testing.T, r store.Roster, presences ...store.Presence) {
	t.Helper()
	if err := r.Attend(within(t), presences); err != nil {
		t.Fatalf("Attend() of %d presences = %v, want nil", len(presences), err)
	}
}

// leave removes presences.
func leave(t *testing.T, r store.Roster, workerType string, ids ...string) {
	t.Helper()
	if err := r.Leave(within(t), workerType, ids); err != nil {
		t.Fatalf("Leave(%q) of %d presences = %v, want nil", workerType, len(ids), err)
	}
}

// presences lists those of a worker type, or of all.
func presences(t *testing.T, r store.Roster, workerType string) []store.Presence {
	t.Helper()
	all, err := r.Presences(within(t), workerType)
	if err != nil {
		t.Fatalf("Presences(%q) = %v, want nil", workerType, err)
	}
	return all
}

// wantPresences demands that a listing has these presences, in the order of their keys.
func wantPresences(t *testing.T, what string, got []store.Presence, want ...store.Presence) {
	t.Helper()
	want = slices.SortedFunc(slices.Values(want), store.ComparePresences)
	if g, w := keysOf(got), keysOf(want); !slices.Equal(g, w) {
		t.Errorf("%s = %.600q, want %.600q", what, g, w)
		return
	}
	for i := range want {
		wantPresence(t, what, got[i], want[i])
	}
}

// wantPresence compares a presence that was read with the one that was attended.
func wantPresence(t *testing.T, what string, got, attended store.Presence) {
	t.Helper()
	g, w := reflect.ValueOf(unlabelled(got)), reflect.ValueOf(unlabelled(attended.Truncated()))
	for i := range g.NumField() {
		if a, b := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %s of %s = %.200s, want %.200s", what, g.Type().Field(i).Name, keyOf(attended), shown(a), shown(b))
		}
	}
}

// unlabelled takes no labels for none.
func unlabelled(p store.Presence) store.Presence {
	if len(p.Labels) == 0 {
		p.Labels = nil
	}
	return p
}

// shown is show of a field, which may be a pointer.
func shown(v any) string {
	if score, ok := v.(*float64); ok && score != nil {
		return fmt.Sprint(*score)
	}
	return show(v)
}

// keyOf is the key of a presence as text.
func keyOf(p store.Presence) string { return fmt.Sprintf("%.100s/%.100s", p.WorkerType, p.ID) }

func keysOf(all []store.Presence) (keys []string) {
	for _, p := range all {
		keys = append(keys, keyOf(p))
	}
	return keys
}
