package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
)

func TestWorkerTypesAreCompletedFromTheStore(t *testing.T) {
	t.Parallel()
	l, storeArg := newLedger(t)
	for _, name := range []string{"export", "mail", "exchange"} {
		r := recordtest.Grant(1, 0, "a")
		r.WorkerType = name
		must(t, l.Append(t.Context(), r))
	}
	missing := "sqlite:" + filepath.Join(t.TempDir(), "none.db")
	for _, test := range []struct {
		env  []string
		args []string
		want string
	}{
		{nil, []string{"inspect", "slots", "--store", storeArg, "--worker-type", ""}, "exchange\nexport\nmail\n:4\n"},
		{nil, []string{"inspect", "slots", "--store", storeArg, "--worker-type", "ex"}, "exchange\nexport\n:4\n"},
		{[]string{storeuri.Variable + "=" + storeArg}, []string{"run", "--worker-type", "m"}, "mail\n:4\n"},
		{nil, []string{"override", "--store", storeArg, "--worker-type", "e"}, "exchange\nexport\n:4\n"},
		{nil, []string{"run", "--worker-type", "m"}, ":4\n"},
		{nil, []string{"run", "--store", "ftp://x", "--worker-type", "m"}, ":4\n"},
		{nil, []string{"run", "--store", missing, "--worker-type", "m"}, ":4\n"},
	} {
		got := leasectl(t, test.env, append([]string{"__completeNoDesc"}, test.args...)...)
		if got.code != exit.OK || got.stdout != test.want || strings.Contains(got.stderr, "leasectl:") {
			t.Errorf("completing %q = %+v, want %q", test.args, got, test.want)
		}
	}
	if _, err := os.Stat(strings.TrimPrefix(missing, "sqlite:")); !os.IsNotExist(err) {
		t.Errorf("completion made a ledger: %v", err)
	}
}

// Not parallel: it waits for as long as a shell does.
func TestCompletionGivesUpSoon(t *testing.T) {
	defer func(wait time.Duration) { completionWait = wait }(completionWait)
	completionWait = shellWait
	for _, of := range []string{"--worker-type", "--instance-id"} {
		got := leasectl(t, nil, "__completeNoDesc", "why", "--store", "mongodb://127.0.0.1:1/x", of, "m")
		if got.code != exit.OK || got.stdout != ":4\n" || strings.Contains(got.stderr, "leasectl:") {
			t.Errorf("completing %s = %+v, want nothing", of, got)
		}
	}
}
