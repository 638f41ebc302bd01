package app

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

func TestEveryKindOfFailureHasItsExitCode(t *testing.T) {
	for err, want := range map[error]int{
		store.ErrRefused:                 exit.Refused,
		store.ErrDenied:                  exit.Denied,
		fs.ErrPermission:                 exit.Denied,
		store.ErrMissing:                 exit.Missing,
		store.ErrInvalid:                 exit.Usage,
		store.ErrThrottled:               exit.Unreachable,
		&net.DNSError{Err: "no host"}:    exit.Unreachable,
		errors.New("connection refused"): exit.Unreachable,
	} {
		var stderr bytes.Buffer
		a := &app{stderr: &stderr}
		if got := a.report(advice.ForStore(storeuri.Target{Scheme: "mongodb"}, fmt.Errorf("now: %w", err))); got != want {
			t.Errorf("report(advice.ForStore(%v)) = %d, want %d", err, got, want)
		}
		if want := "leasectl: now: " + err.Error() + "\n"; !strings.HasPrefix(stderr.String(), want) {
			t.Errorf("report(advice.ForStore(%v)) wrote %q, want %q first", err, stderr.String(), want)
		}
	}
	if got := (&app{stderr: &bytes.Buffer{}}).report(errors.New("other")); got != exit.Failure {
		t.Errorf("report(other) = %d, want %d", got, exit.Failure)
	}
}

func TestACorruptLedgerIsRefusedWithSoundAdvice(t *testing.T) {
	l, storeArg := newLedger(t)
	must(t, errors.Join(l.Append(t.Context(), recordtest.Grant(1, 0, "a")), l.Close(t.Context())))
	path := strings.TrimPrefix(storeArg, "sqlite:")
	content, err := os.ReadFile(path)
	must(t, err)
	const page = 4096 // the first, which tells what the file is, stays whole
	for i := page; i < len(content); i++ {
		content[i] = 0xa5
	}
	must(t, os.WriteFile(path, content, 0o600))
	got := leasectl(t, nil, "inspect", "slots", "--store", storeArg)
	if got.code != exit.Refused || !strings.Contains(got.stderr, ": store refused: the file is corrupt: stop all its workers, then remove it: ") {
		t.Errorf("leasectl inspect slots = %+v, want that the file is corrupt, and what to do", got)
	}
}

func TestInitPrintsWhatAnAdministratorWouldRunAndCreatesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	env := []string{"AZURE_STORAGE_KEY=a2V5", "COSMOS_KEY=a2V5", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"}
	for uri, want := range map[string][]string{
		"sqlite:" + path:                            {"CREATE TABLE WorkerLeases", "COMMIT;"},
		"postgres://app:c4n4ry@db/jobs?table=x":     {`CREATE TABLE IF NOT EXISTS "public"."x" `, `GRANT SELECT, INSERT, DELETE ON "public"."x" TO "app";`},
		"mysql://app:c4n4ry@db/jobs":                {"CREATE TABLE IF NOT EXISTS `jobs`.`worker_leases` ", "TO 'app'@'%';"},
		"mongodb://app:c4n4ry@db/jobs?collection=x": {`ledgers.createCollection("x_roster")`, `{ db: "jobs", collection: "x" }, actions: ["find", "insert", "remove", `},
		"redis://app:c4n4ry@db/0?prefix=x":          {"# Nothing is to be created.", "ACL SETUSER worker on >PASSWORD ~{x}:* "},
		"s3://bucket/jobs?region=eu-central-1":      {"aws s3api create-bucket --bucket bucket --region eu-central-1", `"arn:aws:s3:::bucket/jobs/*"`},
		"azblob://acct/jobs":                        {"az storage container create --account-name acct ", "Storage Blob Data Contributor"},
		"cosmos://acct/jobs/leases?throughput=1000": {"--name leases --throughput 1000 ", "--name leases-roster ", "items/upsert"},
	} {
		got := leasectl(t, env, "init", "--print", "--store", uri)
		if got.code != exit.OK || got.stderr != "" || strings.Contains(got.stdout, "c4n4ry") || !strings.HasSuffix(got.stdout, "\n") {
			t.Errorf("leasectl init --print --store %s = %+v, want a script without the password", uri, got)
		}
		for _, text := range want {
			if !strings.Contains(got.stdout, text) {
				t.Errorf("leasectl init --print --store %s = %s, want %q in it", uri, got.stdout, text)
			}
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("leasectl init --print created the file")
	}
}

// full is an output to which nothing can be written.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestOutputThatCanNotBeWrittenIsAFailure(t *testing.T) {
	l, storeArg := newLedger(t)
	must(t, l.Append(t.Context(), recordtest.Grant(1, 0, "a")))
	for _, args := range [][]string{
		{"version"},
		{"version", "--output", "json"},
		{"--help"},
		{"help", "exit-codes"},
		{"init", "--store", storeArg},
		{"plan", "--store", "mongo", "--every", "5m"},
		{"inspect", "slots", "--store", storeArg, "--output", "json"},
		{"inspect", "slots", "--store", storeArg, "--watch"},
	} {
		var stderr bytes.Buffer
		code := execute(t.Context(), args, nil, strings.NewReader(""), full{}, &stderr)
		const want = "leasectl: the output can't be written: no space left on device\n"
		if code != exit.Failure || !strings.HasSuffix(stderr.String(), want) { // (cobra repeats the reason after help)
			t.Errorf("leasectl %q = %d, %q, want %d, %q", args, code, stderr.String(), exit.Failure, want)
		}
	}
}
