package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// blocking puts a grant into a new ledger that leaves nothing to claim for a month.
func blocking(t *testing.T) (l store.Ledger, storeArg string) {
	t.Helper()
	l, storeArg = newLedger(t)
	r := recordtest.Grant(1, 0, "stranger")
	r.WindowStart = time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	r.WindowEnd, r.Token = r.WindowStart.AddDate(0, 0, 30), r.WindowStart.UnixMilli()
	must(t, l.Append(t.Context(), r))
	return l, storeArg
}

// headOf is the newest record of the type export.
func headOf(t *testing.T, l store.Ledger) store.Record {
	t.Helper()
	all, _, err := l.Tail(t.Context(), "export", 1)
	if err != nil || len(all) == 0 {
		t.Fatalf("Tail() = %v, %v", all, err)
	}
	return all[0]
}

// terminal is a pseudo-terminal: leasectl reads from the one end what is typed at the other.
func terminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = user.Close() })
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0)
	}
	must(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = program.Close() })
	return user, program
}

func TestOverrideShowsTheRiskAndAsks(t *testing.T) {
	for typed, yes := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false, "yo\n": false, "\x04": false} {
		l, storeArg := blocking(t)
		before := headOf(t, l)
		user, program := terminal(t)
		if _, err := io.WriteString(user, typed); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		args := []string{"override", "--store", storeArg, "--worker-type", "export", "--seq", "1", "--reason", "its host is gone"}
		code := execute(t.Context(), args, nil, program, &stdout, &stderr)
		until := store.Format(before.WindowEnd)
		for _, want := range []string{
			"worker type export, record 1: a grant by \"stranger\", until " + until + "\n",
			"\nin force: record 1, \"stranger\", token ",
			"\nrisk: if \"stranger\" still works, two work until " + until + "\n",
		} {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%q: leasectl override wrote %q, want %q in it", typed, stderr.String(), want)
			}
		}
		head := headOf(t, l)
		if !strings.Contains(stderr.String(), "\noverride record 1? [y/N] ") {
			t.Errorf("%q: leasectl override asked %q", typed, stderr.String())
		}
		if !yes {
			if code != exit.Failure || head != before || !strings.HasSuffix(stderr.String(), "leasectl: nothing was written\n") {
				t.Errorf("%q: leasectl override = %d, %q, and the head is %+v", typed, code, stderr.String(), head)
			}
			continue
		}
		wrote := fmt.Sprintf("wrote record 2: %q has overridden record 1; slots are free from %s on\n", operator(), store.Format(head.WindowStart))
		if code != exit.OK || head.Kind != store.KindOverride || head.Metadata != "its host is gone" || head.InstanceID != operator() || stdout.String() != wrote {
			t.Errorf("%q: leasectl override = %d, %q, want %q; the head is %+v", typed, code, stdout.String(), wrote, head)
		}
	}
}

// asking is where a question is written, which is answered by an interrupt.
type asking struct {
	bytes.Buffer
	interrupt func()
}

func (a *asking) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "[y/N]") {
		a.interrupt()
	}
	return a.Buffer.Write(b)
}

func TestOverrideCanBeInterruptedWhileItAsks(t *testing.T) {
	l, storeArg := blocking(t)
	_, program := terminal(t)
	ctx, interrupt := context.WithCancel(t.Context())
	stderr := asking{interrupt: interrupt}
	code := execute(ctx, []string{"override", "--store", storeArg, "--worker-type", "export", "--seq", "1"}, nil, program, io.Discard, &stderr)
	if code != exit.Interrupted || !strings.HasSuffix(stderr.String(), "leasectl: interrupted; nothing was written\n") || headOf(t, l).Seq != 1 {
		t.Errorf("leasectl override = %d, %q", code, stderr.String())
	}
}

func TestOverrideWithoutATerminal(t *testing.T) {
	l, storeArg := blocking(t)
	override := func(args ...string) output {
		return leasectl(t, nil, append([]string{"override", "--store", storeArg, "--worker-type", "export"}, args...)...)
	}
	asked := override("--seq", "1")
	if asked.code != exit.Usage || asked.stdout != "" || !strings.Contains(asked.stderr, "\nrisk: if \"stranger\" still works, ") ||
		!strings.HasSuffix(asked.stderr, "\nleasectl: the input is no terminal, so that nobody can be asked; nothing was written\ntry: --yes\n") {
		t.Errorf("leasectl override without --yes = %+v", asked)
	}
	moved := "leasectl: override \"export\": the newest record is another: workers go by record 1, not 2; nothing was written\ntry: leasectl inspect slots --worker-type export --store " + storeArg + "\n"
	if got := override("--seq", "2", "--yes"); got.code != exit.Failure || got.stdout != "" || got.stderr != moved {
		t.Errorf("leasectl override --seq 2 = %+v, want %q", got, moved)
	}
	if head := headOf(t, l); head.Seq != 1 {
		t.Fatalf("%+v was written", head)
	}
	done := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	got := override("--seq", "1", "--yes", "--done-until", done.Format(time.RFC3339))
	head := headOf(t, l)
	if got.code != exit.OK || !strings.Contains(got.stderr, "\nrisk: if \"stranger\" still works, ") || !head.DoneUntil.Equal(done) || !strings.HasSuffix(got.stdout, " on, but no job runs before "+store.Format(done)+": slots up to then count as done\n") || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("leasectl override --yes = %+v, and the head is %+v", got, head)
	}
	rows := inspected(t, nil, "--store", storeArg, "--worker-type", "export").Slots
	if len(rows) < 2 || rows[0].State != "overridden" || rows[1].State != "override" || rows[1].InstanceID != operator() {
		t.Errorf("inspect slots = %+v, want what was overridden, and by whom", rows)
	}
	var stderr bytes.Buffer
	code := execute(t.Context(), []string{"override", "--store", storeArg, "--worker-type", "export", "--seq", "2", "--yes"}, nil, strings.NewReader(""), full{}, &stderr)
	if code != exit.Failure || !strings.Contains(stderr.String(), "\nleasectl: wrote record 3: ") || !strings.HasSuffix(stderr.String(), "; but the output can't be written: no space left on device\n") {
		t.Errorf("leasectl override with a full disk = %d, %q, want it to name the record that it wrote", code, stderr.String())
	}
	missing := "sqlite:" + t.TempDir() + "/none.db"
	if got := leasectl(t, nil, "override", "--store", missing, "--worker-type", "export", "--seq", "1", "--yes"); got.code != exit.Missing {
		t.Errorf("leasectl override of no ledger = %+v, want code %d", got, exit.Missing)
	}
	if _, err := os.Stat(strings.TrimPrefix(missing, "sqlite:")); !os.IsNotExist(err) {
		t.Errorf("leasectl override made a ledger: %v", err)
	}
}
