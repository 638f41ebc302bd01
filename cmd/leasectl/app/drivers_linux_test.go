package app

import (
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/s3peer"
)

// registered are the stores that leasectl opens by their schemes: each gives the URI of a ledger that isn't made yet, and
// the variables that it takes besides.
var registered = map[string]func(t *testing.T) (uri string, env []string){
	"PostgreSQL": func(t *testing.T) (string, []string) { t.Helper(); return postgrespeer.Database(t), nil },
	"MySQL": func(t *testing.T) (string, []string) {
		t.Helper()
		login, place, _ := strings.Cut(mysqlpeer.Database(t), "@tcp(") // USER@tcp(HOST:PORT)/NAME
		host, name, _ := strings.Cut(place, ")/")
		name, _, _ = strings.Cut(name, "?")
		return "mysql://" + login + "@" + host + "/" + name, nil
	},
	"Redis": func(t *testing.T) (string, []string) {
		t.Helper()
		return redispeer.Shared(t) + "?unsafeNoPersistence=true&prefix=" + strings.ToLower(rand.Text()), nil
	},
	"S3": func(t *testing.T) (string, []string) {
		t.Helper()
		uri := "s3://" + strings.ToLower(rand.Text()) + "/jobs?pathStyle=true&endpoint=" + url.QueryEscape(s3peer.Shared(t))
		return uri, []string{"AWS_ACCESS_KEY_ID=" + s3peer.ID, "AWS_SECRET_ACCESS_KEY=" + s3peer.Secret}
	},
	"Azure Blob Storage": func(t *testing.T) (string, []string) {
		t.Helper()
		uri := "azblob://" + azuritepeer.Account + "/" + strings.ToLower(rand.Text()) + "/jobs?endpoint=" + url.QueryEscape(azuritepeer.Shared(t)+"/"+azuritepeer.Account)
		return uri, []string{"AZURE_STORAGE_KEY=" + azuritepeer.Key}
	},
}

func TestTheCommandsWorkOnEachRegisteredStore(t *testing.T) {
	t.Parallel()
	suites.SameGoroutines(t)
	for name, fresh := range registered { // One after the other: each starts a server.
		t.Run(name, func(t *testing.T) {
			uri, env := fresh(t)
			env = append(env, storeuri.Variable+"="+uri)
			for _, c := range []struct{ args, says string }{
				{"init", "the ledger " + strings.SplitAfter(uri, ":")[0]},
				{"init", "is ready, without records"},
				{"status", "no worker types"},
				{"next --every 1h", "IN"},
				{"pause --worker-type t --for 1h --reason upgrade", "paused until"},
				{"status", "paused until"},
				{"resume --worker-type t", "no more pause"},
				{"inspect slots", "order"},
				{"why --worker-type t", "worker type t"},
				{"inspect workers", "workers of all types"},
				{"verify", "t: sound"},
				{"doctor --timeout 30s", " 0 failed"}, // A machine may be busy.
				{"doctor --timeout 30s --output json", `"durability"`},
				{"override --worker-type t --yes --reason upgrade", ""},
			} {
				got := leasectl(t, env, strings.Fields(c.args)...)
				if wrong := strings.HasPrefix(c.args, "override"); !wrong && got.code != exit.OK || !strings.Contains(got.stdout+got.stderr, c.says) {
					t.Errorf("leasectl %s = %+v, want %q", c.args, got, c.says)
				}
				for _, secret := range []string{s3peer.Secret, azuritepeer.Key} {
					if strings.Contains(got.stdout+got.stderr, secret) {
						t.Errorf("leasectl %s shows a key: %+v", c.args, got)
					}
				}
			}
		})
	}
}

// A command runs under leases on a store, and its worker type is moved there from a file, while workers lead it: no slot has
// a holder on both. With SLOTLEASE_MOVES=all that is so for each registered store.
func TestAWorkerTypeMovesToARegisteredStoreUnderLoad(t *testing.T) {
	t.Parallel()
	for name, fresh := range registered {
		if name != "PostgreSQL" && os.Getenv("SLOTLEASE_MOVES") != "all" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			uri, env := fresh(t)
			_, from := newLedger(t)
			old := startRun(t, from, "old", nil, "sleep", "1000")
			old.await("command started")
			got := leasectl(t, env, "copy", "--store", from, "--to", uri, "--worker-type", "t", "--yes")
			if got.code != exit.OK || !strings.Contains(got.stdout, "moved t from sqlite:") {
				t.Fatalf("leasectl copy = %+v", got)
			}
			l, err := store.Open(t.Context(), uri, store.OpenOptions{Getenv: lookup(env)})
			must(t, err)
			t.Cleanup(func() { _ = l.Close(t.Context()) })
			fresh := startIn(t, env, "run", "--store", uri, "--worker-type", "t", "--instance-id", "new", "--every", "5s", "-v", "--", "sleep", "1000")
			fresh.await("command started")
			ends(t, old, fresh)
			all := records(t, l)
			if got := leasectl(t, env, "verify", "--store", uri); got.code != exit.OK || !strings.Contains(got.stdout, "t: sound") {
				t.Errorf("leasectl verify = %+v, want a sound ledger", got)
			}
			moved := false
			for _, r := range all {
				if r.Kind == store.KindGrant && r.InstanceID == "new" {
					moved = true
				} else if r.Kind == store.KindGrant && moved {
					t.Errorf("seq %d is a grant of %s, above one of the new store's worker", r.Seq, r.InstanceID)
				}
			}
			if !moved {
				t.Errorf("the new store has %d records, none of its own worker", len(all))
			}
			again := leasectl(t, env, "copy", "--store", from, "--to", uri, "--worker-type", "t", "--yes", "--output", "json")
			if again.code != exit.OK {
				t.Errorf("leasectl copy, once more = %+v", again)
			}
		})
	}
}

// lookup is the environment of variables.
func lookup(env []string) func(name string) string {
	return func(name string) string {
		for _, pair := range env {
			if n, v, _ := strings.Cut(pair, "="); n == name {
				return v
			}
		}
		return ""
	}
}

// startIn is start with more variables.
func startIn(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startUnder(t, append([]string{"/usr/bin/env"}, env...), args...)
}

func TestABadURIOfARegisteredStoreIsAMistakeInTheUsage(t *testing.T) {
	for _, uri := range []string{
		"postgres://u:c4naryS3cret@h/d?sslmod=x", "mysql://u:c4naryS3cret@h/d?tsl=x", "redis://u:c4naryS3cret@h/x", "s3://c4naryS3cret:x@bucket", "azblob://acct", "s3://",
	} {
		got := leasectl(t, []string{storeuri.Variable + "=" + uri}, "status")
		if got.code != exit.Usage || strings.Contains(got.stderr, "c4nary") || !strings.Contains(got.stderr, "try: ") {
			t.Errorf("leasectl status with %s = %+v, want a mistake in the usage, and no secret", uri, got)
		}
	}
	// A store that this leasectl lacks.
	for uri, want := range map[string]string{"etcd://u:c4nary@h/x": "store/etcd", "etcds://h/x": "store/etcd", "k8s:jobs": "store/kubernetes", "nats://u:c4nary@h/x": "store/nats"} {
		file := fileOf(t, uri+"\n")
		for _, got := range []output{
			leasectl(t, []string{storeuri.Variable + "=" + uri}, "status"),
			leasectl(t, nil, "status", "--store-file", file),
			leasectl(t, nil, "copy", "--store", "sqlite:x.db", "--worker-type", "t", "--to-file", file),
		} {
			if got.code != exit.Usage || strings.Contains(got.stderr, "c4nary") || !strings.HasSuffix(got.stderr, "build the one in "+want+"/leasectl\ntry: in a clone of slotlease: cd "+want+" && go install ./leasectl\n") {
				t.Errorf("leasectl with %s = %+v, want which leasectl has it", uri, got)
			}
		}
	}
}

func TestACopyThatIsRepeatedSaysSo(t *testing.T) {
	t.Parallel()
	_, from := newLedger(t)
	_, to := newLedger(t)
	if got := leasectl(t, nil, "prefer", "--store", from, "--worker-type", "export", "--instance-id", "a", "--for", "1h"); got.code != exit.OK {
		t.Fatalf("leasectl prefer = %+v", got)
	}
	for n, want := range []string{"moved export from sqlite:", "export was moved from sqlite:"} {
		got := leasectl(t, nil, "copy", "--store", from, "--to", to, "--worker-type", "export", "--yes", "--timeout", "1h")
		if got.code != exit.OK || !strings.Contains(got.stdout, want) {
			t.Errorf("leasectl copy, time %d = %+v, want %q", n+1, got, want)
		}
	}
	// The store that it has left says so, and doesn't let its pause end by mistake.
	moved := "don't resume it here: it was moved to another store"
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"status"}, exit.OK, moved},
		{[]string{"why", "--worker-type", "export"}, exit.OK, moved},
		{[]string{"doctor"}, -1, "stop the workers of export with this store: it was moved from here"},
		{[]string{"prefer", "--worker-type", "export", "--instance-id", "b", "--for", "1h"}, exit.OK, "was moved to another store"},
		{[]string{"pause", "--worker-type", "export", "--for", "1s"}, exit.Failure, moved},
		{[]string{"resume", "--worker-type", "export"}, exit.Failure, moved},
		{[]string{"resume", "--worker-type", "export", "--risk-two-holders"}, exit.OK, "no more pause"},
	} {
		got := leasectl(t, nil, append(c.args, "--store", from)...)
		if text := strings.Join(strings.Fields(got.stdout+got.stderr), " "); got.code != c.code && c.code >= 0 || !strings.Contains(text, c.want) {
			t.Errorf("leasectl %q on the store that was left = %+v, want %d and %q", c.args, got, c.code, c.want)
		}
	}
}
