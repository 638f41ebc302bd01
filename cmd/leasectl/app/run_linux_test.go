package app

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/demo"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/store"
)

// family is a command that ignores SIGTERM, with a child, a grandchild, and a
// child in a session of its own.
const family = `trap '' TERM; setsid sh -c 'trap "" TERM; sleep 1000 & wait' & sh -c 'sleep 1000 & wait' & echo family up; wait; sleep 1000`

// familySize is how many processes that is, at least.
const familySize = 5

// runFamily starts a worker and waits until the family is there.
func runFamily(t *testing.T, storeArg string, flags ...string) *process {
	t.Helper()
	args := []string{"run", "--store", storeArg, "--worker-type", "t", "--instance-id", "a", "--every", "3s", "-v"}
	p := start(t, append(append(args, flags...), "--", "sh", "-c", family)...)
	p.await("family up")
	procs.Eventually(t, "the family is complete", func() bool { return len(p.descendants()) >= familySize })
	return p
}

// lastWindow is the window that was in force at a time.
func lastWindow(t *testing.T, l store.Ledger, at time.Time) store.Record {
	t.Helper()
	for _, r := range slices.Backward(records(t, l)) {
		if r.Kind == store.KindGrant && !r.WindowStart.After(at) {
			return r
		}
	}
	t.Fatal("no window was in force")
	return store.Record{}
}

func TestNoDescendantOutlivesTheWindow(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(t *testing.T, p *process, path string){
		"when the command ignores SIGTERM": func(*testing.T, *process, string) {},
		"when leasectl is stopped":         func(_ *testing.T, p *process, _ string) { p.signal(syscall.SIGSTOP) },
		"when the ledger is removed": func(t *testing.T, _ *process, path string) {
			t.Helper()
			must(t, os.Remove(path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			p := runFamily(t, storeArg)
			pids := p.descendants()
			window := lastWindow(t, l, storeTime(t, l))
			disturb(t, p, strings.TrimPrefix(storeArg, "sqlite:"))
			var seen time.Time // alive, at the latest: a busy machine may show that it is gone much later
			procs.Eventually(t, "the family of the first slot is gone", func() bool {
				before, alive := time.Now(), p.descendants() // realtime: make prove judges it
				if !slices.ContainsFunc(pids, func(pid int) bool { return slices.Contains(alive, pid) }) {
					return true
				}
				seen = before
				return false
			})
			// The ledger and this process share the wall clock.
			procs.Within(t, "from the end of the window to when some of the family was seen last", seen.Sub(window.WindowEnd), 500*time.Millisecond)
		})
	}
}

func TestTheCommandKnowsItsLeaseAndNotTheStore(t *testing.T) {
	l, storeArg := newLedger(t)
	file := filepath.Join(t.TempDir(), "env")
	t.Setenv(storeuri.FileVariable, fileOf(t, storeArg+"\n"))
	t.Setenv("NOTIFY_SOCKET", "/nowhere")
	t.Setenv("WATCHDOG_USEC", "30000000")
	t.Setenv("WATCHDOG_PID", "1")
	t.Setenv("LEASE_TOKEN", "0")
	t.Setenv("LEASE_OTHER", "kept")
	p := start(t, "run", "--worker-type", "t", "--instance-id", "a b", "--group", "north", "--every", "2s",
		"--", "sh", "-c", `env > "$0.new"; mv "$0.new" "$0"`, file)
	var b []byte
	procs.Eventually(t, "the command's environment", func() bool {
		var err error
		b, err = os.ReadFile(file)
		return err == nil
	})
	ends(t, p)
	got := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if _, twice := got[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		got[name] = value
	}
	all := records(t, l)
	at := slices.IndexFunc(all, func(r store.Record) bool { return strconv.FormatInt(r.Token, 10) == got["LEASE_TOKEN"] })
	if at < 0 {
		t.Fatalf("LEASE_TOKEN = %q, which no record has", got["LEASE_TOKEN"])
	}
	r := all[at]
	for name, want := range map[string]string{
		"LEASE_WORKER_TYPE": "t", "LEASE_INSTANCE_ID": "a b", "LEASE_GROUP": "north",
		"LEASE_SLOT_START": store.Format(r.SlotStart),
		"LEASE_SLOT_END":   store.Format(r.SlotEnd), "LEASE_EXPIRES_AT": store.Format(r.WindowEnd),
		"LEASE_OTHER": "kept", "PATH": os.Getenv("PATH"),
	} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
	for _, name := range []string{storeuri.Variable, storeuri.FileVariable, "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if v, ok := got[name]; ok {
			t.Errorf("%s = %q was passed on", name, v)
		}
	}
}

// runsOf are the runs that commands noted in a file: their slots, tokens and times.
func runsOf(t *testing.T, file string) (runs []commandRun) {
	t.Helper()
	for _, line := range procs.Lines(file) {
		var at int64
		var r commandRun
		if _, err := fmt.Sscan(line, &r.slot, &r.token, &at); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		r.at = time.Unix(0, at)
		runs = append(runs, r)
	}
	return runs
}

type commandRun struct {
	slot, token string
	at          time.Time
}

func TestACommandThatEndsIsStartedOnceInEachSlot(t *testing.T) {
	t.Parallel()
	const note = `echo "$LEASE_SLOT_START" "$LEASE_TOKEN" $(date +%s%N) >> "$0"; `
	const untilTold = `while :; do sleep 0.02; done`
	for name, test := range map[string]struct {
		every        time.Duration
		flag         string
		goesOn       bool
		script, says string
	}{
		"by itself":               {time.Second, "--on-exit=keep", false, note + "exit 3", "exit code 3, ended by itself"},
		"by itself, in one lease": {2 * time.Second, "--continuous --on-exit=keep", true, note, "exit code 0, ended by itself"},
		"with its slot":           {4 * time.Second, "--failover-within=2s", false, "trap 'exit 0' TERM; " + note + untilTold, "stopped at the deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now() // realtime: a machine that was busy is no verdict
			l, storeArg := newLedger(t)
			file := filepath.Join(t.TempDir(), "runs")
			p := startRun(t, storeArg, "a", append(strings.Fields(test.flag), "--every", test.every.String()), "sh", "-c", test.script, file)
			procs.Eventually(t, "the third slot, under one lease if it goes on", func() bool {
				token := "" // the newest
				slots := map[string]bool{}
				for _, r := range slices.Backward(runsOf(t, file)) {
					if token = cmp.Or(token, r.token); r.token == token || !test.goesOn {
						slots[r.slot] = true
					}
				}
				return len(slots) >= 3
			})
			p.await(test.says)
			ends(t, p)
			runs := runsOf(t, file)
			releases := slices.DeleteFunc(records(t, l), func(r store.Record) bool { return r.Kind != store.KindRelease })
			// A busy machine may extend a lease when its command was told to end already, or not at
			// all: then the rest is given back.
			if extendedLate(p.output()) > 0 || len(releases) > 1 || strings.Contains(p.output(), " store: ") {
				procs.TooLate(t, begun, "the lease was extended late, or given back")
			}
			seen := map[string]bool{}
			for _, r := range runs {
				if seen[r.slot] {
					t.Errorf("the command was run more than once in slot %s", r.slot)
				}
				seen[r.slot] = true
				slot, err := time.Parse(time.RFC3339, r.slot)
				if err != nil || r.at.Before(slot) || r.at.After(slot.Add(test.every)) {
					t.Errorf("the run in slot %s was at %v: %v", r.slot, r.at, err)
				}
			}
		})
	}
}

// extendedLate is how often a log shows that a command was told to end, and its lease was
// extended all the same. A lease that goes on into the next slot has the name of that.
func extendedLate(log string) (n int) {
	cut := 0 // and not extended since
	for line := range strings.Lines(log) {
		_, about, _ := strings.Cut(line, " slot ")
		_, event, _ := strings.Cut(about, ": ")
		switch {
		case strings.HasPrefix(event, "extended late"):
			n++
			cut--
		case strings.HasPrefix(event, "allocated"):
			cut = 0
		case strings.Contains(event, "stopped at the deadline"):
			cut++
		case strings.HasPrefix(event, "extended") && cut > 0:
			n++
			cut = 0
		}
	}
	return n
}

func TestSIGTERMStopsTheCommandThenReleases(t *testing.T) {
	t.Parallel()
	l, storeArg := newLedger(t)
	log := filepath.Join(t.TempDir(), "work.log")
	p := start(t, "run", "--store", storeArg, "--worker-type", "t", "--instance-id", "a", "--every", oneSlot, "--failover-within", "10h", "--stop-grace", "5m",
		"--", "/proc/self/exe", demo.WorkCommand, log)
	procs.Eventually(t, "work", func() bool {
		lines, err := demo.ReadLog(log)
		return err == nil && len(lines) > 0
	})
	p.await("command started") // The command may work before leasectl has heard of it.
	ends(t, p)
	rest := p.output()
	for _, want := range []string{"stopping: terminated", "stopping the command", "ended: stopped", "command: exit code 0", "released at", "stopped\n"} {
		var found bool
		if _, rest, found = strings.Cut(rest, want); !found {
			t.Fatalf("leasectl run: no %q, or not in this order", want)
		}
	}
	ended := storeTime(t, l)
	boot := guard.Boottime()
	lines, err := demo.ReadLog(log)
	must(t, err)
	last := lines[len(lines)-1]
	if last.Event != demo.LineEnd {
		t.Errorf("the command was not let finish: its last line is %+v", last)
	}
	all := records(t, l)
	head := all[len(all)-1]
	if head.Kind != store.KindRelease {
		t.Fatalf("the head is %+v, want a release", head)
	}
	if end := ended.Add(last.Boot - boot); head.WindowStart.Before(end.Add(-2 * time.Millisecond)) {
		t.Errorf("released at %s, before the command ended at %s", store.Format(head.WindowStart), store.Format(end))
	}
}

func TestASecondSignalKillsACommandThatWillNotStop(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"a command":          {"--failover-within", "100h", "--stop-grace", "4m"},
		"a job of each slot": {"--once-per-slot", "--start-within", oneSlot, "--failover-within", "1h", "--stop-grace", "5m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			p := startRun(t, storeArg, "a", append([]string{"--every", oneSlot}, flags...), "sh", "-c", family)
			p.await("family up")
			begun := time.Now()
			p.signal(syscall.SIGINT)
			p.await("stopping: interrupt\n")
			if len(p.descendants()) == 0 {
				t.Error("the first signal left the command no grace")
			}
			// timeout and process groups send two at once: that is one wish.
			p.signal(syscall.SIGTERM)
			if apart := time.Since(begun); apart > 900*time.Millisecond {
				procs.TooLate(t, begun, fmt.Sprintf("%v between two signals: too long for one wish", apart))
			}
			time.Sleep(1100 * time.Millisecond)
			if len(p.descendants()) == 0 {
				t.Error("two signals at once left the command no grace")
			}
			p.signal(syscall.SIGINT)
			p.exits(exit.OK)
			if left := p.descendants(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			all := records(t, l)
			if head := all[len(all)-1]; head.Kind != store.KindRelease || !head.DoneUntil.IsZero() || strings.Contains(p.output(), ": failed: worker stopped") != (name == "a job of each slot") {
				t.Errorf("the head is %+v, want a release of what isn't done, and that a job has failed", head)
			}
		})
	}
}

func TestAStoreThatIsLockedIsToldAndTriedAgain(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	p := startRun(t, storeArg, "a", nil, "sleep", "1000")
	p.await("command started")
	unlock := lockFile(t, strings.TrimPrefix(storeArg, "sqlite:"))
	p.await("outcome unknown")
	p.gone()
	unlock()
	before := strings.Count(p.output(), "command started")
	procs.Eventually(t, "it works again", func() bool { return strings.Count(p.output(), "command started") > before })
}

func TestAStoreThatIsDownIsToldAtOnceAndKeepsNobodyFromStopping(t *testing.T) {
	t.Parallel()
	// Connections are accepted, and never answered.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	p := startRun(t, "mongodb://"+l.Addr().String()+"/jobs", "a", nil, "true")
	p.await(`worker "a" of worker type "t", priority 0, every 1s`)
	p.await("store not reached yet: ")
	p.await("; trying on\n")
	told := time.Now() // realtime: make prove judges it
	ends(t, p)
	procs.Within(t, "stopping with a store that is down", time.Since(told), 2*time.Second) // realtime: make prove judges it
	if out := p.output(); !strings.Contains(out, "stopping: terminated\n") || strings.Count(out, "WARN") != 1 {
		t.Errorf("leasectl run wrote %q, want one warning and the name of the signal", out)
	}
}

func TestASignalThatWasIgnoredAtTheStartStaysIgnored(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	p := startUnder(t, []string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, "run", "--store", storeArg, "--worker-type", "t", "--every", oneSlot, "--failover-within", "10h", "--", "sleep", "1000")
	p.await("command started")
	p.signal(syscall.SIGHUP)
	ends(t, p)
	if !strings.Contains(p.output(), "stopping: terminated\n") {
		t.Error("leasectl run didn't stop for SIGTERM")
	}
}

// lockFile takes the write lock of a SQLite file until it is called back.
func lockFile(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	exec := func(statements string) {
		t.Helper()
		if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statements); err != nil {
			t.Fatal(err)
		}
	}
	exec("PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE")
	return func() { exec("ROLLBACK") }
}
