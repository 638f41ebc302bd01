//go:build linux

package promtest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The holder is killed, and the other worker is not fit to lead: first a lease is in force that nobody works
// under, and then there is none, until a worker takes over.
func TestAlertsFireWhenTheHolderIsKilled(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "leases.db")
	holder := start(t, "promlease", ledger)
	other := start(t, "otellease", ledger, unfitVariable+"=1")
	s := serve(t, holder.address, other.address)
	fires := func(name, summary string) func() bool {
		return func() bool { return s.firing(t, name) == summary }
	}
	const nobody = "SlotleaseNobodyHolds"

	eventually(t, 4*interval, "one holds, both know it, and nothing fires", func() bool {
		return s.value(t, "sum(slotlease_lease_holding)") == 1 && s.value(t, "sum(slotlease_holder_known)") == 2 &&
			s.firing(t, nobody)+s.firing(t, "SlotleaseHolderGone")+s.firing(t, "SlotleaseNoWorkers") == ""
	})
	sameNames(t, s, holder.address, other.address)
	begun := s.value(t, "max(slotlease_token)")
	eventually(t, 2*interval, "a slot begins", func() bool { return s.value(t, "max(slotlease_token)") > begun })
	dashboardAnswers(t, s)
	holder.kill()
	eventually(t, interval, "the holder is gone", fires("SlotleaseHolderGone", "The holder of report is gone, or is not scraped."))
	eventually(t, 2*interval, "nobody holds", fires(nobody, "Nobody holds report."))

	successor := start(t, "promlease", ledger)
	s.target(t, successor.address, other.address)
	eventually(t, 3*interval, "somebody holds again", fires(nobody, ""))
	other.kill()
	successor.kill()
	eventually(t, interval, "no worker is left", fires("SlotleaseNoWorkers", "All workers of report are gone."))
}

// sameNames checks that both adapters have all metrics by the same names, but for what hasn't happened.
func sameNames(t *testing.T, s *server, a, b string) {
	t.Helper()
	var ofA, ofB map[string]bool
	eventually(t, 5*time.Second, "both are scraped", func() bool {
		ofA, ofB = s.names(t, a), s.names(t, b)
		return len(ofA) > 0 && len(ofB) > 0
	})
	happened := func(name string) bool { // OpenTelemetry shows histograms only when they have something.
		for _, h := range []string{"slotlease_slot_delay", "slotlease_claim_early", "slotlease_task_duration"} {
			if strings.HasPrefix(name, h) {
				return false
			}
		}
		return true
	}
	for _, name := range slices.Sorted(maps.Keys(ofA)) {
		if !ofB[name] && happened(name) {
			t.Errorf("%s is shown by promlease only", name)
		}
	}
	for name := range ofB {
		if !ofA[name] {
			t.Errorf("%s is shown by otellease only", name)
		}
	}
	if len(ofA) < 50 {
		t.Errorf("%d metrics, want more", len(ofA))
	}
}

// dashboardAnswers checks that the server understands all queries of the dashboard.
func dashboardAnswers(t *testing.T, s *server) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "grafana-dashboard.json"))
	must(t, err)
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	must(t, json.Unmarshal(text, &d))
	asked := strings.NewReplacer("$worker_type", ".*", "$__rate_interval", "20s")
	answers, empty := 0, []string(nil)
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			if len(s.query(t, asked.Replace(q.Expr))) > 0 {
				answers++
			} else {
				empty = append(empty, q.Expr)
			}
		}
	}
	if answers < 30 {
		t.Errorf("%d queries of the dashboard have an answer, want more, and these have none:\n%s", answers, strings.Join(empty, "\n"))
	}
}
