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
