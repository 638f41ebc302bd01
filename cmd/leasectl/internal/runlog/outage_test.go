package runlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease/event"
)

// An outage has a line when it begins, by the look at the ledger or by the worker, and one when it ends.
func TestAnOutageIsToldWhenItBeginsAndWhenItEnds(t *testing.T) {
	failed := func(operation string, err error, again bool) event.Event {
		return event.StoreFailed{Worker: worker, Operation: operation, Err: err, Again: again}
	}
	over := func(missed int) event.Event {
		return event.StoreRecovered{Worker: worker, Took: 90 * time.Second, Failures: 3, Missed: missed}
	}
	down, denied := errors.New("refused"), fmt.Errorf("tail: %w", store.ErrDenied)
	removed := fmt.Errorf("%w: removed (%w)", sqlite.ErrUnshared, store.ErrMissing)
	sample := event.ClockSample{Worker: worker, StoreTime: noon}
	const ready = "INFO ready: store time 2026-03-02T12:00:00.000Z ± 0s"
	for name, c := range map[string]struct {
		events  []event.Event
		want    []string
		reached bool
	}{
		"down at the start": {
			[]event.Event{failed("check", down, false), failed("now", down, false), failed("now", down, true), sample, over(0)},
			[]string{"WARN store not reached yet: refused; trying on", ready, "INFO store: reached again after 1m30s"},
			true,
		},
		"down later": {
			[]event.Event{sample, failed("now", down, false), failed("now", down, true), sample},
			[]string{ready, "WARN store: now failed: refused"},
			false,
		},
		"down for slots": {
			[]event.Event{sample, failed("now", down, false), over(1)},
			[]string{ready, "WARN store: now failed: refused", "WARN store: reached again after 1m30s; meanwhile it missed 1 slot, and lost 0 leases"},
			true,
		},
		"denied, while anybody may ask for the time": {
			[]event.Event{sample, failed("tail", denied, false), sample, failed("tail", denied, true), sample},
			[]string{ready, "WARN store: tail failed: tail: access denied; leasectl ends if that lasts for 10s"},
			false,
		},
		"denied at the start": {
			[]event.Event{failed("check", store.ErrDenied, false)},
			[]string{"WARN store not reached yet: access denied; leasectl ends if that lasts for 10s"},
			false,
		},
		"denied to the look at the ledger, and to the worker": {
			[]event.Event{failed("check", store.ErrDenied, false), failed("now", store.ErrDenied, false)},
			[]string{"WARN store not reached yet: access denied; leasectl ends if that lasts for 10s"},
			false,
		},
		"refused at the start": {
			[]event.Event{failed("check", store.ErrRefused, false)}, []string{"WARN store not reached yet: store refused"}, false,
		},
		"broken off, before why is known": {
			[]event.Event{failed("now", fmt.Errorf("now: %w", context.Canceled), false)}, nil, false,
		},
		"removed": {
			[]event.Event{sample, failed("now", removed, false)},
			[]string{ready, "WARN store: now failed: " + removed.Error() + "; leasectl ends in 10s"},
			false,
		},
		"down, then denied": {
			[]event.Event{failed("check", down, false), failed("tail", denied, false)},
			[]string{"WARN store not reached yet: refused; trying on", "WARN store not reached yet: tail: access denied; leasectl ends if that lasts for 10s"},
			false,
		},
	} {
		for _, asJSON := range []bool{false, true} {
			var stderr bytes.Buffer
			j := New(Options{To: &stderr, Level: zapcore.InfoLevel, JSON: asJSON, Worker: worker})
			for _, e := range c.events {
				j.Observe(e)
			}
			if j.Reached() != c.reached {
				t.Errorf("%s: Reached() = %v", name, !c.reached)
			}
			j.Failing()
			j.Observe(failed("get", fmt.Errorf("get: %w", context.Canceled), false)) // We broke it off.
			var got []string
			for line := range strings.Lines(written(j, &stderr)) {
				_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				got = append(got, strings.Join(strings.Fields(rest), " "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" && !asJSON || len(got) != len(c.want) {
				t.Errorf("%s: the log, as JSON: %v (-want +got):\n%s", name, asJSON, diff)
			}
		}
	}
}

// What ends leasectl is its last word, and isn't told twice.
func TestWhatALookAtTheLedgerMeetsIsToldOnce(t *testing.T) {
	denied, down := fmt.Errorf("tail: %w", store.ErrDenied), errors.New("down")
	tail := event.StoreFailed{Worker: worker, Operation: "tail", Err: denied}
	for name, c := range map[string]struct {
		met    event.StoreFailed
		report error
		found  error
		want   []string
	}{
		"it ends leasectl":           {tail, nil, denied, nil},
		"the look finds nothing":     {tail, nil, nil, []string{"tail: access denied"}},
		"it has lasted for a moment": {tail, store.ErrDenied, nil, []string{"access denied"}},
		"the look meets another":     {tail, down, nil, []string{"down", "tail: access denied"}},
		"it passes":                  {event.StoreFailed{Worker: worker, Operation: "now", Err: down}, nil, nil, []string{"down"}},
	} {
		var stderr bytes.Buffer
		j := New(Options{To: &stderr, Level: zapcore.InfoLevel, Worker: worker})
		err := j.Check(t.Context(), func(report func(error)) error {
			if c.report != nil {
				report(c.report)
			}
			j.Observe(c.met)
			return c.found
		})
		if !errors.Is(err, c.found) {
			t.Errorf("%s: Check() = %v, want %v", name, err, c.found)
		}
		got := written(j, &stderr)
		lacks := func(what string) bool { return !strings.Contains(got, "store not reached yet: "+what) }
		if strings.Count(got, "WARN") != len(c.want) || slices.ContainsFunc(c.want, lacks) {
			t.Errorf("%s: the log is %q, want %q", name, got, c.want)
		}
	}
}
