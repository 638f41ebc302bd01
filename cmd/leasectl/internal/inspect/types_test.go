package inspect

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

func TestAnUnknownWorkerTypeFailsWithThoseThereAre(t *testing.T) {
	l := planted()
	for i := range 30 {
		other := recordtest.Grant(1, 0, "a")
		other.WorkerType = fmt.Sprintf("mail-%02d", i)
		l.Put(other)
	}
	few := planted()
	for _, name := range []string{"mail", "exports"} {
		other := recordtest.Grant(1, 0, "a")
		other.WorkerType = name
		few.Put(other)
	}
	for _, test := range []struct {
		ledger    store.Ledger
		name      string
		want, try string
	}{
		{few, "nope", `no such worker type "nope": the ledger has export, exports, mail`, ""},
		{few, "Exprot", `no such worker type "Exprot": the ledger has export, exports, mail`, "--worker-type export"},
		{few, "exportss", `no such worker type "exportss": the ledger has exports, export, mail`, "--worker-type exports"},
		{l, "mail-2", `no such worker type "mail-2": the ledger has mail-02, mail-12, mail-20, mail-21, mail-22, mail-23, mail-24, mail-25, ` +
			`mail-26, mail-27, mail-28, mail-29, mail-00, mail-01, mail-03, mail-04, mail-05, mail-06, mail-07, mail-08 and 11 more`, "--worker-type mail-02"},
	} {
		for _, output := range []string{Table, JSON} {
			got, err := shown(t, test.ledger, Options{WorkerType: test.name, Last: 1, Output: output, Timeout: time.Minute})
			e, ok := errors.AsType[*exit.Error](err)
			if !ok || got != "" || e.Error() != test.want || e.Try != test.try || e.Code != exit.Usage {
				t.Errorf("inspect slots --worker-type %s = %q, %+v, want %q, try %q", test.name, got, err, test.want, test.try)
			}
		}
	}
}

// evilTypes are names that another program may have used.
var evilTypes = []string{"", "--yes", "$(reboot)", "a\nb", "exp\u202etro", "x\x1b]0;t\a", "\u200bexport", strings.Repeat("é", 99)}

func TestInvalidWorkerTypesAreNamedAsSuchAndNeverUsed(t *testing.T) {
	const all = `invalid ones: "", "$(reboot)", "--yes", "a\nb", "exp\u202etro", "x\x1b]0;t\a", "éééééééééééééééééééééééééééééééé"…, "\u200bexport"`
	evil := func(names ...string) *memory.Ledger {
		l := blockedBy()
		for _, name := range append(names, evilTypes...) {
			r := recordtest.Grant(1, 0, "a")
			r.WorkerType = name
			l.Put(r)
		}
		return l
	}
	for _, test := range []struct {
		ledger    *memory.Ledger
		name      string
		shows     string // in the table
		want, try string // of the error
	}{
		{evil(), "", "no worker types but " + all + " · store time ", "", ""},
		{evil(), "nope", "worker type nope · ", "", ""},
		{evil("export"), "", "worker type export · ", "", ""},
		{evil("export"), "export", "worker type export · ", "", ""},
		{evil("export"), "exprot", "", `no such worker type "exprot": the ledger has export, and ` + all, "--worker-type export"},
		{evil("export", "mail"), "", "", "the ledger has 2 worker types, name one with --worker-type: export, mail, and " + all, "--worker-type export"},
	} {
		got, err := shown(t, test.ledger, Options{WorkerType: test.name, Last: 1, Output: Table, Timeout: time.Minute})
		e, failed := errors.AsType[*exit.Error](err)
		switch {
		case test.want == "" && (err != nil || !strings.HasPrefix(got, test.shows)):
			t.Errorf("inspect slots --worker-type %s = %q, %v, want %q", test.name, got, err, test.shows)
		case test.want == "":
		case !failed || got != "" || e.Error() != test.want || e.Try != test.try || e.Code != exit.Usage:
			t.Errorf("inspect slots --worker-type %s = %q, %+v, want %q, try %q", test.name, got, err, test.want, test.try)
		}
		if display.Text(got) != got {
			t.Errorf("inspect slots --worker-type %s = %q, want what can be shown", test.name, got)
		}
	}
}

func TestSightingsHaveNoSlots(t *testing.T) {
	_, err := shown(t, planted(), Options{WorkerType: store.Sightings, Last: 1, Output: Table, Timeout: time.Minute})
	e, ok := errors.AsType[*exit.Error](err)
	const want = "slotlease.sightings has no slots: under this name workers record since when a record of a worker type can't be obeyed"
	if !ok || e.Code != exit.Usage || e.Error() != want {
		t.Errorf("inspect slots --worker-type %s = %v, want %q", store.Sightings, err, want)
	}
}
