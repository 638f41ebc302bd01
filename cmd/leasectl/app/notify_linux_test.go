package app

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/notify"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
)

// hooks is a server that is told of runs.
type hooks struct {
	mu   sync.Mutex
	told []notify.Facts
}

func (h *hooks) all() []notify.Facts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.told)
}

// serve answers at a URL with a secret.
func (h *hooks) serve(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var f notify.Facts
		if err := json.Unmarshal(body, &f); err != nil {
			t.Error(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.told = append(h.told, f)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/c4n4ry-of-a-hook"
}

func TestOthersAreToldOfRunsThatFailAndOfSlotsGivenUp(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	file := filepath.Join(t.TempDir(), "told")
	var h hooks
	p := startOnce(t, storeArg, "a", oneSlot, "4s", []string{
		"--max-attempts", "2", "--min-retry", "10ms", "-v", "--on-failure", h.serve(t), "--on-success", "touch " + file + ".success",
		"--on-given-up", `echo "$LEASE_EVENT $LEASE_ATTEMPT $LEASE_EXIT_CODE $LEASECTL_STORE" > ` + file + `; echo heard; exit 5`,
	}, "sh", "-c", "exit 3")
	p.await("given up: not done, and not tried again")
	p.await("heard")
	ends(t, p)
	told := h.all()
	if len(told) != 2 || told[0].Attempt != 1 || told[1].Attempt != 2 || told[1].Event != notify.Failure || *told[1].ExitCode != 3 || told[1].InstanceID != "a" {
		t.Errorf("told %+v, want two attempts that failed", told)
	}
	if got := procs.Lines(file); !slices.Equal(got, []string{"given-up 2 3 "}) || len(procs.Lines(file+".success")) > 0 {
		t.Errorf("the command was told %q, want the last attempt", got)
	}
	if out := p.output(); strings.Contains(out, "c4n4ry") || strings.Count(out, "on-given-up: echo not told: exit code 5, ended by itself") != 1 {
		t.Errorf("the log is\n%s\nwant that the command failed, and no secret", out)
	}
}

// Once tells before it ends.
func TestOnceTellsOfItsRun(t *testing.T) {
	proveProcesses(t)
	_, storeArg := newLedger(t)
	var h hooks
	args := func(command string, flags ...string) []string {
		url := h.serve(t)
		args := append([]string{"run", "--store", storeArg, "--worker-type", "t", "--every", oneSlot, "--once", "--on-success", url, "--on-failure", url}, flags...)
		return append(args, "--", "sh", "-c", command)
	}
	if got := leasectl(t, nil, args("exit 4")...); got.code != 4 {
		t.Errorf("leasectl = %+v, want 4", got)
	}
	if got := leasectl(t, nil, args("true", "--once-per-slot")...); got.code != exit.OK {
		t.Errorf("leasectl = %+v, want 0", got)
	}
	if told := h.all(); len(told) != 2 || told[0].Event != notify.Failure || *told[0].ExitCode != 4 || told[1].Event != notify.Success || *told[1].ExitCode != 0 {
		t.Errorf("told %+v, want a failure and a success", told)
	}
}

func TestABadTargetIsReportedWithoutItsSecret(t *testing.T) {
	got := leasectl(t, nil, "run", "--store", "sqlite:x", "--worker-type", "t", "--every", "5m", "--on-missed", "https://h/c4n4ry/{slot}", "--on-success", "@/nowhere", "--", "true")
	if got.code != exit.Usage || strings.Contains(got.stderr, "c4n4ry") || !strings.Contains(got.stderr, "--on-missed: its URL has {slot}: the placeholders are ") || !strings.Contains(got.stderr, `--on-success: "/nowhere": no such file`) {
		t.Errorf("leasectl = %+v, want both problems", got)
	}
}
