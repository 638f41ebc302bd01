package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The commands that alerts tell people to run are understood.
func TestAlertsNameCommandsThatRun(t *testing.T) {
	if testing.Short() {
		t.Skip("runs leasectl")
	}
	t.Parallel()
	leasectl, store := filepath.Join(build(t), "leasectl"), "sqlite:"+filepath.Join(t.TempDir(), "leases.db")
	run := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), leasectl, args...)
		c.Env = append(os.Environ(), "LEASECTL_STORE="+store)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("leasectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("init")
	done := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^          run: (.*)$`).FindAllStringSubmatch(read(t, "docs/prometheus-alerts.yml").text, -1) {
		command := regexp.MustCompile(`\{\{.*?\}\}`).ReplaceAllString(m[1], "report")
		args, ok := strings.CutPrefix(command, "leasectl ")
		if !ok {
			t.Errorf("%q is no command of leasectl", command)
		}
		if !done[command] {
			run(strings.Fields(args)...)
		}
		done[command] = true
	}
	if len(done) < 4 {
		t.Errorf("alerts name the commands %v, want more", done)
	}
}

// The metrics that docs/production.md tells people to watch are there, under these names.
func TestTheMetricsToWatchAreInTheTable(t *testing.T) {
	all := read(t, "docs/metrics.md").text
	watched := regexp.MustCompile("`(slotlease_[a-z_]+)`").FindAllStringSubmatch(read(t, "docs/production.md").text, -1)
	for _, m := range watched {
		if !strings.Contains(all, "\n| `"+m[1]+"` | ") {
			t.Errorf("docs/production.md names %s, which docs/metrics.md doesn't list", m[1])
		}
	}
	if len(watched) < 5 {
		t.Errorf("docs/production.md names %d metrics, want five", len(watched))
	}
}
