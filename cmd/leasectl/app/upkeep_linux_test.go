package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/testutil/clocks"
)

func TestBackupCopiesALedgerThatIsInUse(t *testing.T) {
	l, storeArg := newLedger(t)
	must(t, l.Append(t.Context(), recordtest.Grant(1, 0, "worker-a")))
	to := filepath.Join(t.TempDir(), "copy.db")
	got := leasectl(t, nil, "backup", "--store", storeArg, "--to", to)
	if got.code != exit.OK || got.stdout != "copied the ledger "+storeArg+" to "+to+"\n" {
		t.Errorf("leasectl backup = %+v", got)
	}
	if rows := inspected(t, nil, "--store", "sqlite:"+to, "--worker-type", "export").Slots; len(rows) == 0 || rows[0].InstanceID != "worker-a" {
		t.Errorf("inspect slots of the copy = %+v, want that of worker-a", rows)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--store", storeArg, "--to", to}, exit.Failure, to + " exists: nothing is overwritten"},
		{[]string{"--store", storeArg, "--to", filepath.Join(t.TempDir(), "no", "copy.db")}, exit.Failure, "the copy can't be written: "},
		{[]string{"--store", storeArg + ".none", "--to", to + "2"}, exit.Missing, "ledger not initialised"},
		{[]string{"--store", "mongodb://h/d", "--to", to + "2"}, exit.Usage, "leasectl backup is for SQLite ledgers: mongodb://h/d is another store"},
		{[]string{"--store", storeArg}, exit.Usage, "--to is missing"},
	} {
		if got := leasectl(t, nil, append([]string{"backup"}, c.args...)...); got.code != c.code || !strings.Contains(got.stderr, c.want) {
			t.Errorf("leasectl backup %q = %+v, want %d and %q", c.args, got, c.code, c.want)
		}
	}
	if _, err := os.Stat(to + "2"); !os.IsNotExist(err) {
		t.Errorf("a backup that failed left its file: %v", err)
	}
}

// wrongClock is a ledger that was first used while the clock was wrong.
func wrongClock(t *testing.T, by time.Duration, records ...store.Record) (storeArg string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leases.db")
	l, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Clock: clocks.Skewed(clock.New(), by)})
	if err == nil {
		_, err = l.Now(t.Context())
	}
	for _, r := range records {
		if err == nil {
			err = l.Append(t.Context(), r)
		}
	}
	if err == nil {
		err = l.Close(t.Context())
	}
	must(t, err)
	return "sqlite:" + path
}

func TestReanchorTakesTheMachinesClockForStoreTime(t *testing.T) {
	// Between the two clocks are two moments, of which a busy machine makes more than 3h.
	about := regexp.MustCompile(`(2h59m5|3h0m)[0-9]s`)
	said := func(args ...string) output {
		got := leasectl(t, nil, args...)
		got.stdout, got.stderr = about.ReplaceAllString(got.stdout, "3h"), about.ReplaceAllString(got.stderr, "3h")
		return got
	}
	for by, want := range map[time.Duration]string{-3 * time.Hour: ", 3h behind the machine's clock: ", 3 * time.Hour: ", 3h ahead of the machine's clock: "} {
		storeArg := wrongClock(t, by)
		if got := said("inspect", "slots", "--store", storeArg); got.code != exit.OK || !strings.HasPrefix(got.stderr, "leasectl: warning: the machine's clock is 3h ") {
			t.Errorf("leasectl inspect slots = %+v, want a warning", got)
		}
		var s inspect.Snapshot
		asJSON := said("inspect", "slots", "--store", storeArg, "--output", "json")
		if err := json.Unmarshal([]byte(asJSON.stdout), &s); err != nil || !strings.HasPrefix(s.Warning, "the machine's clock is 3h ") {
			t.Errorf("leasectl inspect slots --output json = %+v, %v, want the warning", asJSON, err)
		}
		asked := said("reanchor", "--store", storeArg)
		if asked.code != exit.Usage || asked.stdout != "" || !strings.Contains(asked.stderr, want) || !strings.HasSuffix(asked.stderr, "; nothing was changed\ntry: --yes\n") ||
			strings.Contains(asked.stderr, "risk: store time is set back") != (by > 0) {
			t.Errorf("leasectl reanchor without --yes = %+v", asked)
		}
		got := said("reanchor", "--store", storeArg, "--yes")
		if got.code != exit.OK || !strings.Contains(got.stderr, want) || !strings.HasPrefix(got.stdout, "store time was ") {
			t.Errorf("leasectl reanchor --yes = %+v", got)
		}
		if got := said("inspect", "slots", "--store", storeArg); got.code != exit.OK || got.stderr != "" {
			t.Errorf("leasectl inspect slots afterwards = %+v, want no warning", got)
		}
	}
}

func TestReanchorRefusesALedgerThatIsInUse(t *testing.T) {
	r := recordtest.Grant(1, 0, "worker-a")
	r.WindowStart = time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	r.WindowEnd = r.WindowStart.Add(time.Hour)
	storeArg := wrongClock(t, -3*time.Hour, r)
	got := leasectl(t, nil, "reanchor", "--store", storeArg, "--yes")
	if got.code != exit.Failure || !strings.Contains(got.stderr, `the ledger is in use: terms may be in force: "export" until `) || !strings.HasSuffix(got.stderr, "; nothing was changed\n") {
		t.Errorf("leasectl reanchor with a term in force = %+v", got)
	}
	storeArg = wrongClock(t, -3*time.Hour)
	l, err := sqlite.Open(t.Context(), sqlite.Options{Path: strings.TrimPrefix(storeArg, "sqlite:")})
	must(t, err)
	defer l.Close(t.Context())
	before, err := l.Now(t.Context())
	must(t, err)
	if text := l.Warning(); !strings.Contains(text, "ahead of store time") {
		t.Errorf("Warning() = %q", text)
	}
	got = leasectl(t, nil, "reanchor", "--store", storeArg, "--yes")
	after, err := l.Now(t.Context())
	if got.code != exit.Failure || err != nil || after.Time.Sub(before.Time) > time.Hour {
		t.Errorf("leasectl reanchor beside a worker = %+v, and the time is %v, %v", got, after, err)
	}
}

func TestRunWarnsOfAWrongClock(t *testing.T) {
	t.Parallel()
	p := startRun(t, wrongClock(t, -3*time.Hour), "a", nil, "sleep", "1000")
	p.await("WARN  the machine's clock is 3h0m0s ahead of store time")
}
