package leasectltest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
)

// Harness is a leasectl with a further store.
type Harness struct {
	// Fresh returns the URI of a ledger that isn't made yet, and what leasectl needs in its environment.
	Fresh func(t *testing.T) (uri string, env []string)
	// Form is that of the store's URIs, as the store registers it.
	Form string
	// Every is the length of slots, and Failover how soon others take over: long enough for the store's clock.
	Every, Failover time.Duration
	// Secrets are texts that leasectl must show nowhere, and Withheld the variables, of those that Fresh returns, that the
	// commands of leases must not get.
	Secrets, Withheld []string
	// Bad are URIs with mistakes, and what leasectl says of each.
	Bad map[string]string
	// Checks are those that the store makes besides the known ones.
	Checks []string
}

// Run tests the commands of leasectl on the store, one after another.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(t *testing.T, h Harness){
		"help": help, "mistakes": mistakes, "commands": commands, "one command": once, "takeover": takeover, "move": move,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// do runs leasectl, and demands an exit code, a text and no secret in its output.
func (h Harness) do(t *testing.T, env []string, code int, says string, args ...string) Output {
	t.Helper()
	got := Leasectl(t, env, args...)
	if got.Code != code || !strings.Contains(got.Stdout+got.Stderr, says) {
		t.Errorf("leasectl %q = %+v, want code %d and %q", args, got, code, says)
	}
	h.hides(t, got.Stdout+got.Stderr)
	return got
}

// hides demands that an output has no secret.
func (h Harness) hides(t *testing.T, output string) {
	t.Helper()
	for _, secret := range h.Secrets {
		if strings.Contains(output, secret) {
			t.Errorf("leasectl shows a secret:\n%s", output)
		}
	}
}

// ledger is a fresh one, in the environment.
func (h Harness) ledger(t *testing.T) (uri string, env []string) {
	t.Helper()
	uri, env = h.Fresh(t)
	return uri, append(env, "LEASECTL_STORE="+uri)
}

func help(t *testing.T, h Harness) {
	h.do(t, nil, 0, "\n  "+h.Form, "--help")
	scheme, _, _ := strings.Cut(h.Form, ":")
	h.do(t, nil, 0, scheme+":", "init", "--help")
	h.do(t, nil, 2, scheme+":", "status", "--store", "leases.db")
	for _, check := range h.Checks {
		h.do(t, nil, 0, "\n  "+check+" ", "doctor", "--help")
	}
}

func mistakes(t *testing.T, h Harness) {
	for uri, says := range h.Bad {
		h.do(t, []string{"LEASECTL_STORE=" + uri}, 2, says, "status")
		h.do(t, nil, 2, says, "run", "--store", uri, "--worker-type", "t", "--every", "1m", "--", "true")
		plan := Leasectl(t, nil, "plan", "--store", uri, "--every", "1m") // goes by the kind of store, if it knows that
		h.hides(t, plan.Stdout+plan.Stderr)
	}
}

func commands(t *testing.T, h Harness) {
	uri, env := h.ledger(t)
	for _, c := range []struct {
		args, says string
	}{
		{"init", "the ledger " + strings.SplitAfter(uri, ":")[0]},
		{"init", "without records"},
		{"status", "no worker types"},
		{"next --every 1h", "IN"},
		{"pause --worker-type t --for 1h --reason upgrade", "paused until"},
		{"status", "paused until"},
		{"resume --worker-type t", "no more pause"},
		{"inspect slots", "order"},
		{"inspect workers", "workers of all types"},
		{"why --worker-type t", "worker type t"},
		{"verify", "t: sound"},
		{"trim --worker-type t --yes", "deleted"},
		{"doctor", " 0 failed"},
		{"doctor --output json", `"durability"`},
		{"__complete inspect slots --worker-type ", "t\n"},
	} {
		args := strings.Split(c.args, " ")
		h.do(t, env, 0, c.says, args...)
	}
	shown := h.do(t, env, 0, "", "doctor").Stdout
	for _, check := range h.Checks {
		if !strings.Contains(shown, " "+check+" ") {
			t.Errorf("leasectl doctor has no check %s:\n%s", check, shown)
		}
		if strings.Index(shown, " "+check+" ") < strings.Index(shown, " connection ") {
			t.Errorf("leasectl doctor shows the check %s before connection", check)
		}
	}
}

func once(t *testing.T, h Harness) {
	_, env := h.ledger(t)
	h.do(t, env, 0, "", "init")
	got := h.do(t, env, 0, "LEASE_TOKEN=", "run", "--worker-type", "t", "--every", "24h", "--once", "--once-per-slot", "--timeout", "60s", "--", "env")
	for _, variable := range append([]string{"LEASECTL_STORE"}, h.Withheld...) {
		if strings.Contains("\n"+got.Stdout, "\n"+variable+"=") {
			t.Errorf("the command's environment has %s:\n%s", variable, got.Stdout)
		}
	}
	h.do(t, env, 0, "", "run", "--worker-type", "t", "--every", "24h", "--once", "--once-per-slot", "--timeout", "60s", "--", "env")
	h.do(t, env, 0, "1 worker", "status")
}

// worker starts one whose command goes on.
func (h Harness) worker(t *testing.T, env []string, name string, flags ...string) *Process {
	t.Helper()
	args := append([]string{"run", "--worker-type", "t", "--instance-id", name, "--every", h.Every.String(), "-v"}, flags...)
	return Start(t, env, append(args, "--", "sleep", "1000")...)
}

// takeover kills the holder of three workers, so that another one goes on.
func takeover(t *testing.T, h Harness) {
	_, env := h.ledger(t)
	h.do(t, env, 0, "", "init")
	all := map[string]*Process{}
	for n, name := range []string{"a", "b", "c"} {
		all[name] = h.worker(t, env, name, "--priority", fmt.Sprint(n), "--failover-within", h.Failover.String())
	}
	holder := ""
	suites.Eventually(t, "a holder", func() bool {
		for name, p := range all {
			if holder == "" && p.Began() {
				holder = name
			}
		}
		return holder != ""
	})
	if err := all[holder].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-all[holder].done
	dead := time.Now()
	h.hides(t, all[holder].Output())
	delete(all, holder)
	next := ""
	suites.Eventually(t, "another holder", func() bool {
		for name, p := range all {
			if next == "" && p.Began() {
				next = name
			}
		}
		return next != ""
	})
	t.Logf("%s began %v after %s was killed, with slots of %v and a takeover within %v", next, time.Since(dead).Round(time.Millisecond), holder, h.Every, h.Failover)
	h.do(t, env, 0, next, "status")
	for _, p := range all {
		p.End()
		h.hides(t, p.Output())
	}
	h.do(t, env, 0, "t: sound", "verify")
	h.do(t, env, 0, holder, "inspect", "slots")
}

// move moves a worker type there from a file, while workers lead it on both.
func move(t *testing.T, h Harness) {
	uri, env := h.Fresh(t)
	from := "sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	old := h.worker(t, nil, "old", "--store", from)
	suites.Eventually(t, "the old holder", func() bool { return old.Began() })
	h.do(t, env, 0, "moved t from sqlite:", "copy", "--store", from, "--to", uri, "--worker-type", "t", "--yes", "--timeout", "100s")
	fresh := h.worker(t, env, "new", "--store", uri)
	suites.Eventually(t, "the new holder", func() bool { return fresh.Began() })
	old.End()
	fresh.End()
	h.do(t, env, 0, "t: sound", "verify", "--store", uri)
	h.do(t, env, 0, "old", "inspect", "slots", "--output", "json", "--store", uri) // A table shows no holder of an order.
}
