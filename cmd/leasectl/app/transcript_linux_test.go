package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
)

// What a run writes at its end is in the ledger, and where it would be anyway; a flood, and a descendant that keeps the
// output open, hold nothing up.
func TestTheEndOfTheOutputIsInTheLedger(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	var h hooks
	p := startOnce(t, storeArg, "a", oneSlot, "4s", []string{"--max-attempts", "2", "--min-retry", "10ms", "--output", "tail", "--on-success", h.serve(t)}, "sh", "-c",
		`if [ ! -e $0 ]; then touch $0; sleep 1000 & printf '\033[2Jno space\tleft' >&2; exit 3; fi
		yes 'many lines' | head -n 20000; echo '42 invoices'`, filepath.Join(t.TempDir(), "failed"))
	p.await(": done")
	ends(t, p)
	log := regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z [A-Z]+ .*\n`) // which may come amid a line of the command's
	if out := log.ReplaceAllString(p.output(), ""); strings.Count(out, "many lines\n") != 20_000 || strings.Count(out, "42 invoices\n") != 1 || !strings.Contains(out, "\x1b[2Jno space\tleft") {
		t.Errorf("%d bytes were written, want all that the command wrote", len(out))
	}
	got := leasectl(t, nil, "inspect", "run", "--store", storeArg, "--worker-type", "t")
	first, second, _ := strings.Cut(got.stdout, "\nattempt 2, by a: done")
	if got.code != exit.OK || !strings.Contains(first, "\nattempt 1, by a: released, ") || !strings.Contains(first, ", exit code 3 after ") || !strings.HasSuffix(first, "  | \uFFFD[2Jno space    left\n") {
		t.Errorf("inspect run = %+v, want the end of the first run", got)
	}
	if lines := strings.Count(second, "  | many lines\n"); lines < 1000 || !strings.Contains(second, "\n  | …\n  | many lines\n") || !strings.HasSuffix(second, "  | 42 invoices\n") {
		t.Errorf("inspect run = %d lines, …%q, want the end of the second run", lines, second[max(0, len(second)-100):])
	}
	if told := h.all(); len(told) != 1 || !strings.HasSuffix(told[0].Output, "\nmany lines\n42 invoices\n") || len(told[0].Output) > 16<<10 {
		t.Errorf("told %d times, want once, with the end of the output", len(told))
	}
}

func TestTheOutputGoesToAFile(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	file := filepath.Join(t.TempDir(), "log")
	p := startRun(t, storeArg, "a", []string{"--every", "2s", "--output", "file:" + file}, "sh", "-c", `echo "out $LEASE_TOKEN"; echo err >&2`)
	procs.Eventually(t, "two runs", func() bool { return len(procs.Lines(file)) >= 4 })
	ends(t, p)
	if out := p.output(); strings.Contains(out, "\nout ") || strings.Contains(out, "\nerr\n") {
		t.Errorf("leasectl wrote\n%s\nwant none of the command's lines", out)
	}
	if info, err := os.Stat(file); err != nil {
		t.Error(info, err)
	}
	for _, path := range []string{t.TempDir(), "/nowhere/log"} {
		got := leasectl(t, nil, "run", "--store", storeArg, "--worker-type", "t", "--every", "5m", "--output", "file:"+path, "--", "true")
		if got.code != exit.Usage || !strings.Contains(got.stderr, `--output "file:`+path+`": `) {
			t.Errorf("leasectl = %+v, want 2, and why", got)
		}
	}
}
