package docs

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
)

// drills are those of docs/production.md, by what their rows begin with. A machine's clock is left alone: that is what
// TestAWrongTimeOfDayHasNoEffect shows.
var drills = map[string]func(*drill){
	"`systemctl kill": (*drill).kill,
	"`leasectl pause": (*drill).pause,
	"stop the data":   (*drill).stopTheStore,
	"`timedatectl":    nil,
}

// Each drill of docs/production.md comes out as it says, one after the other, with two workers on PostgreSQL. Slots and
// fail-over are shorter.
func TestDrillsOfProduction(t *testing.T) {
	suites.Prove(t, "it kills workers, and their store")
	t.Parallel()
	server := postgrespeer.Start(t, postgrespeer.Options{})
	p := read(t, "docs/production.md")
	d := &drill{t: t, server: server, leasectl: filepath.Join(build(t), "leasectl"), env: append(os.Environ(), "LEASECTL_STORE="+server.URI()), workers: map[string]*exec.Cmd{}}
	d.ask("init")
	_, line, _ := strings.Cut(p.text, "\nleasectl run ")
	line, _, _ = strings.Cut(line, "\n")
	d.run = strings.Fields(strings.NewReplacer("--every 1m", "--every 4s", "--failover-within 10s", "--failover-within 1s").Replace(line))
	for _, name := range []string{"anna", "ben"} {
		d.start(name)
	}
	rows := p.table(t, "| Do | Expect |")
	for _, row := range rows {
		known := false
		for begin, do := range drills {
			if strings.HasPrefix(row[0], begin) {
				known = true
				if do != nil {
					suites.Eventually(d.t, "one works", func() bool { return d.holder() != "" })
					do(d)
				}
			}
		}
		if !known {
			t.Errorf("no test does: %s", row[0])
		}
	}
	if len(rows) != len(drills) {
		t.Errorf("docs/production.md has %d drills, and the test %d", len(rows), len(drills))
	}
	d.ask("verify")
}

// What docs/production.md grants is what leasectl init --print prints.
func TestRightsOfProductionAreThoseThatAreNeeded(t *testing.T) {
	suites.Server(t, "postgres")
	c := exec.CommandContext(t.Context(), filepath.Join(build(t), "leasectl"), "init", "--print")
	c.Env = append(os.Environ(), "LEASECTL_STORE="+postgrespeer.Database(t))
	out, err := c.Output()
	must(t, err)
	var want, got []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "GRANT ") {
			want = append(want, line[:strings.LastIndex(line, " TO ")])
		}
	}
	for _, b := range read(t, "docs/production.md").blocks() {
		for line := range strings.Lines(b.text) {
			if b.lang == "sql" {
				got = append(got, line[:strings.LastIndex(line, " TO ")])
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/production.md grants\n%s\nand leasectl init --print\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// drill is two workers on a server.
type drill struct {
	t        *testing.T
	server   *postgrespeer.Server
	leasectl string
	run, env []string
	workers  map[string]*exec.Cmd
}

func (d *drill) start(name string) {
	d.t.Helper()
	c := exec.Command(d.leasectl, append([]string{"run", "--instance-id", name}, d.run...)...)
	c.Env = d.env
	var log bytes.Buffer
	c.Stderr = &log
	if err := c.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
		if d.t.Failed() {
			d.t.Logf("%s wrote\n%s", name, &log)
		}
	})
	d.workers[name] = c
}

// kill kills the holder: the other has the lease then.
func (d *drill) kill() {
	d.t.Helper()
	var dead string // At a boundary nobody has the lease for a moment.
	suites.Eventually(d.t, "one works", func() bool { dead = d.holder(); return dead != "" })
	_ = d.workers[dead].Process.Kill()
	suites.Eventually(d.t, "another works", func() bool { h := d.holder(); return h != "" && h != dead })
	d.start(dead)
}

func (d *drill) pause() {
	d.t.Helper()
	d.ask("pause", "--worker-type", "report", "--for", "10m", "--reason", "drill")
	suites.Eventually(d.t, "nobody works", func() bool { return d.holder() == "" })
	d.ask("resume", "--worker-type", "report")
	suites.Eventually(d.t, "one works again", func() bool { return d.holder() != "" })
}

func (d *drill) stopTheStore() {
	d.t.Helper()
	d.server.Kill()
	time.Sleep(5 * time.Second) // longer than a slot
	d.server.Restart()
	suites.Eventually(d.t, "one works again", func() bool { return d.holder() != "" })
}

// holder is the worker that has the lease now, and is there.
func (d *drill) holder() string {
	d.t.Helper()
	var found struct {
		Workers []struct {
			InstanceID string
			Holds      bool
		}
	}
	if err := json.Unmarshal([]byte(d.ask("inspect", "workers", "--worker-type", "report", "--output", "json")), &found); err != nil {
		d.t.Fatal(err)
	}
	for _, w := range found.Workers {
		if w.Holds {
			return w.InstanceID
		}
	}
	return ""
}

// ask runs a command, and returns what it writes.
func (d *drill) ask(args ...string) string {
	d.t.Helper()
	c := exec.Command(d.leasectl, args...)
	c.Env = d.env
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		d.t.Fatalf("leasectl %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}
