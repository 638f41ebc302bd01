package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/suites"
)

// firstSlot is the line of the first slot that has a holder: on a busy machine that may be
// any slot, and any worker.
const firstSlot = `\n +\d+  \d\d:\d\d:\d\d\.\d{3}Z +(north|east|south) `

func TestDemo(t *testing.T) {
	suites.Prove(t, "it runs the demo in real time")
	if testing.Short() {
		t.Skip("takes 15 s")
	}
	t.Parallel()
	begun := time.Now()
	p := start(t, "demo", "--slots", "6", "--interval", "2s")
	procs.Eventually(t, "half of the slots", func() bool { return strings.Contains(p.output(), "\n   3  ") })
	code, out := p.wait(), p.output()
	late := regexp.MustCompile(`was too late|missed +[1-9]`).MatchString(out) && procs.Busy(begun)
	if code != exit.OK { // It judges facts: however busy the machine.
		t.Errorf("leasectl demo = %d, want 0", code)
	}
	wants := []string{
		`SLOT  START \(UTC\) +HOLDER  PRIO  TOKEN +GAP\n`, `(?s)killed (north|east|south) halfway through its slot \(SIGKILL, pid \d+\).*started .* again`, `✓  slots +6 `,
		`✓  cut short +\d.* took over\n`, `✓  overlaps +0 `, `✓  late lines +\d+  refused by the fence\n`, `✓  records +\d+  tokens`, "All as it should be",
	}
	if !late { // On a machine that stays busy, who has a slot, and whether, is no fact of the program. make demo runs alone.
		wants = append(wants, `(?s)took over on time.*started .* again.*is back, by priority`,
			`✓  cut short +1 `, `✓  missed +0\n`, `boundaries +4  median \d`)
	}
	for _, want := range wants {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("leasectl demo: nothing matches %q", want)
		}
	}
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(line); n > 81 && !strings.Contains(line, "leases.db") {
			t.Errorf("line %q has %d columns, want at most 80", line, n-1)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("leasectl demo writes colours to a pipe")
	}
	wantNothingLeft(t, p)
}

// wantNothingLeft checks that neither processes nor files of a demo are left.
func wantNothingLeft(t *testing.T, p *process) {
	t.Helper()
	p.gone()
	if left, err := os.ReadDir(p.tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestADemoThatIsEndedLeavesNothingBehind(t *testing.T) {
	suites.Prove(t, "it runs the demo in real time")
	t.Parallel()
	interrupt := func(p *process) { p.signal(syscall.SIGINT) }
	const interrupted = "leasectl: demo: interrupted; everything is stopped\n"
	for name, test := range map[string]struct {
		moment string
		end    func(*process)
		says   string
	}{
		"interrupted at the beginning":   {"slotlease demo", interrupt, interrupted},
		"interrupted when all are ready": {"All three are ready", interrupt, interrupted},
		"interrupted in a slot":          {firstSlot, interrupt, interrupted},
		"by nobody's reading its output": {"All three are ready", (*process).unread, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.moment == firstSlot {
				brief(t)
			}
			p := start(t, "demo", "--interval", "1s")
			p.awaitMatch(test.moment)
			test.end(p)
			if code := p.wait(); code != exit.Interrupted || !strings.HasSuffix(p.output(), test.says) {
				t.Errorf("leasectl demo = %d, want %d and %q", code, exit.Interrupted, test.says)
			}
			wantNothingLeft(t, p)
		})
	}
}

func TestADemoThatIsKilledLeavesNoProcesses(t *testing.T) {
	brief(t)
	t.Parallel()
	p := start(t, "demo", "--interval", "1s")
	p.awaitMatch(firstSlot)
	p.signal(syscall.SIGKILL)
	p.wait()
	p.gone()
}

func TestAKeptDemoCanBeInspected(t *testing.T) {
	brief(t)
	t.Parallel()
	p := start(t, "demo", "--interval", "1s", "--keep")
	holder := p.awaitMatch(firstSlot)[1]
	p.signal(syscall.SIGINT)
	p.wait()
	kept := p.awaitMatch(`Kept: (\S+)\n`)[1]
	got := leasectl(t, nil, "inspect", "slots", "--store", "sqlite:"+filepath.Join(kept, "leases.db"))
	if got.code != exit.OK || !strings.Contains(got.stdout, holder) {
		t.Errorf("leasectl inspect slots = %+v, want a slot of %s", got, holder)
	}
}
