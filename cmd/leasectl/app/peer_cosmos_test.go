package app

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
)

func TestInitAndInspectWorkOnCosmosDB(t *testing.T) {
	if os.Getenv("COSMOS_URI") != "" {
		t.Skip("COSMOS_URI is set: containers in a real account would have to be paid for")
	}
	before, after, _ := strings.Cut(cosmospeer.URI(t), "/?")
	uri := fmt.Sprintf("%s/leasectl-%d/leases?%s", before, time.Now().UnixNano(), after)
	env := []string{storeuri.Variable + "=" + uri, cosmos.KeyVariable + "=" + cosmospeer.Key()}

	missing := leasectl(t, env, "inspect", "slots")
	if missing.code != exit.Missing || !strings.HasSuffix(missing.stderr, "\ntry: leasectl init --store '"+uri+"'\n") {
		t.Errorf("leasectl inspect slots before init = %+v", missing)
	}
	for _, want := range []string{
		"created the ledger " + uri + " (400 RU/s)\n", "the ledger " + uri + " was there already, without records\n",
	} {
		got := leasectl(t, env, "init")
		if got.code != exit.OK || got.stdout != want {
			t.Errorf("leasectl init = %+v, want %q", got, want)
		}
		// The peer gives no strong consistency.
		if !strings.HasPrefix(got.stderr, "leasectl: warning: the account") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("leasectl init wrote %q, want a warning in one line", got.stderr)
		}
	}
	l, err := cosmos.Open(t.Context(), cosmos.Options{URI: uri, Key: cosmospeer.Key()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Append(t.Context(), recordtest.Grant(1, 0, "worker-a")), l.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	// The same, by a connection string.
	host := strings.TrimPrefix(before, "cosmos://")
	named := []string{
		storeuri.Variable + "=cosmos:///" + strings.TrimPrefix(strings.TrimSuffix(uri, "?"+after), before+"/"),
		cosmos.ConnectionVariable + "=AccountEndpoint=http://" + host + "/;AccountKey=" + cosmospeer.Key(),
	}
	for _, env := range [][]string{env, named} {
		s := inspected(t, env)
		if s.Slots[0].InstanceID != "worker-a" {
			t.Fatalf("leasectl inspect slots = %+v", s)
		}
		if s.Units == nil || s.Units.Total < 2 || s.Units.ByOperation["tail"] == 0 || s.Units.ByOperation["workerTypes"] == 0 {
			t.Errorf("requestUnits = %+v, want those of a tail and of the list of types", s.Units)
		}
	}
	got := leasectl(t, env, "inspect", "slots", "--worker-type", "export")
	if !strings.Contains(got.stdout, "\n\nlooking at it cost ") {
		t.Errorf("leasectl inspect slots = %+v, want what it cost", got)
	}
	t.Logf("%s", got.stdout)
}
