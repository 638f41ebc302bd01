package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

func TestWatchPrintsOnlyWhatChanged(t *testing.T) {
	for _, output := range []string{"table", "json"} {
		var stdout, stderr bytes.Buffer
		screen := Screen{Writer: &stdout, Report: func(err error) {
			e, _ := errors.AsType[*exit.Error](err)
			fmt.Fprintf(&stderr, "leasectl: %v\ntry: %s\n", err, e.Try)
		}}
		ctx, cancel := context.WithCancel(t.Context())
		tail := []store.Record{recordtest.Grant(1, 0, "a")}
		looks := 0
		err := watch(ctx, Options{Output: output, Interval: time.Millisecond}, screen, func() (snapshot, error) {
			looks++
			switch looks {
			case 3:
				return snapshot{}, advice.ForStore(storeuri.Target{}, errors.New("store is down"))
			case 4:
				return snapshot{}, advice.ForStore(storeuri.Target{}, errors.New("store is down"))
			case 5:
				tail = append([]store.Record{recordtest.Grant(2, 1, "b")}, tail...)
			case 7:
				cancel()
			}
			return snapshot{at: recordtest.Noon, store: "s", workerType: "export", rows: history.Read(tail, recordtest.Noon, nil)}, nil
		})
		if err != nil {
			t.Errorf("watch() = %v, want nil", err)
		}
		if got := stderr.String(); got != "leasectl: store is down\ntry: check that the server runs and that host and port are right\n" {
			t.Errorf("watch() reported an outage that lasted: %q", got)
		}
		golden.Compare(t, "watch."+output, stdout.String())
	}
}

func TestWatchPrintsAnExtensionOnlyWhereItShows(t *testing.T) {
	first := recordtest.Part(1, recordtest.Grant(1, 0, "a"), 0, 1)
	tail := []store.Record{first}
	for output, want := range map[string]bool{"table": false, "json": true} {
		var stdout bytes.Buffer
		shown := printed{}
		print := func(tail []store.Record) string {
			stdout.Reset()
			s := snapshot{at: recordtest.Noon, rows: history.Read(tail, recordtest.Noon, nil)}
			if err := shown.print(s, Options{Output: output}, Screen{Writer: &stdout}); err != nil {
				t.Fatal(err)
			}
			return stdout.String()
		}
		if got := print(tail); got == "" {
			t.Errorf("as %s: nothing was printed at first", output)
		}
		if got := print(append([]store.Record{recordtest.Part(2, first, 1, 2)}, tail...)); (got != "") != want {
			t.Errorf("as %s: an extension printed %q", output, got)
		}
	}
}

func TestWatchFailsIfTheFirstLookDoes(t *testing.T) {
	want := errors.New("no")
	err := watch(t.Context(), Options{Interval: time.Hour}, Screen{Writer: &bytes.Buffer{}}, func() (snapshot, error) { return snapshot{}, want })
	if !errors.Is(err, want) {
		t.Errorf("watch() = %v, want %v", err, want)
	}
}
