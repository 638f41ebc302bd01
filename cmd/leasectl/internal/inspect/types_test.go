package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

func TestSightingsHaveNoSlots(t *testing.T) {
	_, err := shown(t, planted(), Options{WorkerType: store.Sightings, Last: 1, Timeout: time.Minute})
	e, ok := errors.AsType[*exit.Error](err)
	const want = "slotlease.sightings has no slots: under this name workers record since when a record of a worker type can't be obeyed"
	if !ok || e.Code != exit.Usage || e.Error() != want {
		t.Errorf("inspect slots --worker-type %s = %v, want %q", store.Sightings, err, want)
	}
}

// A type whose workers wait for their first slot is one wherever one looks.
func TestATypeThatHasNoSlotYetIsShownEverywhere(t *testing.T) {
	l := recorded(4)
	err := l.Attend(t.Context(), []store.Presence{
		{WorkerType: "export", ID: "a", Client: "a", InstanceID: "a", Schedule: "every 5m", Phase: store.PhaseCandidate, Since: recordtest.Minutes(3), Seen: recordtest.Minutes(3), Next: recordtest.Minutes(8)},
		{WorkerType: "gone", ID: "b", Client: "b", InstanceID: "b", Schedule: "every 5m", Phase: store.PhaseCandidate, Since: recordtest.Minutes(1), Seen: recordtest.Minutes(1), Next: recordtest.Minutes(2)},
	})
	must(t, err)
	for name, show := range map[string]func(o Options, s Screen) error{
		"status": func(o Options, s Screen) error { return showStatus(t.Context(), storeuri.Target{}, l, o, s) },
		"slots":  func(o Options, s Screen) error { return showLedger(t.Context(), storeuri.Target{}, l, o, s) },
		"timeline": func(o Options, s Screen) error {
			return glance(t.Context(), o, s, glimpses(t.Context(), storeuri.Target{}, l, o, func(ctx context.Context, l *charges.Ledger, found *timeline) error {
				found.since, found.width = time.Hour, 80
				return found.take(ctx, l, nil)
			}))
		},
	} {
		var out bytes.Buffer
		if err := show(Options{Last: 9, Timeout: time.Minute}, Screen{Writer: &out}); err != nil || strings.Contains(out.String(), "no worker types") || !strings.Contains(out.String(), "export") {
			t.Errorf("%s = %s, %v, want the type export", name, out.String(), err)
		}
	}
}

// A new type whose only run came too late for its slot has left nothing.
func TestATypeThatIsNotKnownMayHaveBegunNothing(t *testing.T) {
	for name, test := range map[string]struct {
		workerType string
		records    []store.Record
		says       bool
	}{
		"among others": {"other", []store.Record{recordtest.Grant(1, 0, "a")}, true},
		"mistyped":     {"exprot", []store.Record{recordtest.Grant(1, 0, "a")}, false},
		"alone":        {"export", nil, true},
	} {
		var out bytes.Buffer
		err := showWhy(t.Context(), storeuri.Target{}, recorded(4, test.records...), Options{WorkerType: test.workerType, Timeout: time.Minute}, Question{}, Screen{Writer: &out})
		text := strings.Join(strings.Fields(fmt.Sprint(out.String(), err)), " ")
		if strings.Contains(text, "run --once that could begin nothing") != test.says {
			t.Errorf("%s: why = %s, want that a run --once may have begun nothing: %v", name, text, test.says)
		}
	}
}
