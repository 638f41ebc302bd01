package workerlease_test

import (
	"context"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/workerlease"
)

func run(ctx context.Context) error {
	ledger, err := mongo.Open(ctx, mongo.Options{URI: os.Getenv("MONGODB_URI")})
	if err != nil {
		return err
	}
	defer ledger.Close(context.WithoutCancel(ctx))

	w, err := workerlease.StartLeasing(ctx, ledger, workerlease.Options{
		WorkerType:    "invoice-export",
		LeaseInterval: 5 * time.Minute,
		Priority:      0, // the highest
	}, workerlease.Callbacks{
		LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
			exportInvoices(ctx, l.Token) // stops when ctx ends
		},
		LeaseExpired: func(l workerlease.Lease, why workerlease.Reason) {
			log.Printf("slot %v is over: %s", l.Slot, why)
		},
	})
	if err != nil {
		return err // bad options, all of them at once
	}
	<-w.Done() // when ctx ends: stop, wait for the work, release
	return nil
}

func exportInvoices(context.Context, int64) {}

func TestReadmeShowsTheCodeThatCompilesHere(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "func run(")
	code, _, _ = strings.Cut(code, "\n}\n")
	if code = "func run(" + code + "\n}\n"; !strings.Contains(string(readme), "```go\n"+code+"```") {
		t.Errorf("README.md doesn't show this code:\n%s", code)
	}
}

func TestReadmeExampleRuns(t *testing.T) {
	t.Setenv("MONGODB_URI", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := run(ctx); err != nil {
		t.Errorf("run() = %v, want nil: a store that is down doesn't end leasing", err)
	}
}

// known are the options and features of other libraries that the README says something
// about.
var known = map[string]string{
	"client-go": `Lock Name Coordinated LeaseDuration RenewDeadline RetryPeriod ReleaseOnCancel WatchDog HealthzAdaptor
		OnStartedLeading OnStoppedLeading OnNewLeader GetLeader IsLeader RunOrDie`,
	"LeaderElection": `LockKey LockExpiry RenewInterval RetryInterval RetryBackoffFactor RetryJitter MaxRetryInterval MaxRetryAttempts
		EnableGracefulShutdown InstanceId StartAsync StopAsync LeaderLoopRunning IsLeader LastLeadershipRenewal LeadershipChanged
		ErrorOccurred RunTaskIfLeaderAsync TryAcquireLeadershipAsync`,
	"Excalibur": `LeaseDuration RenewInterval RetryInterval GracePeriod InstanceId CandidateMetadata MaxRetryAttempts
		EnableHealthChecks MinimumHealthScore StepDownWhenUnhealthy WithHealthChecks UpdateHealthAsync GetCandidateHealthAsync
		BecameLeader LostLeadership LeaderChanged AcquisitionFailed CurrentLeaderId IsLeader StartAsync StopAsync
		ILeaderElectionFactory WithFencingTokens`,
	"Ibis":                     `LockDuration acquireInterval RunTaskWhenElectedLeaderAsync IDistributedLock`,
	"ShedLock":                 `lockAtMostFor lockAtLeastFor usingDbTime KeepAliveLockProvider LockExtender LockAssert`,
	"gocron":                   `Elector Locker`,
	"robfig/cron":              `JobWrapper`,
	"EShopWorld.WorkerProcess": `WorkerType Priority LeaseInterval ElectionDelay IDistributedLock`,
}

// No row of the README's table of features without a test.
func TestReadmeNamesTestsThatExist(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(readme), "| Elsewhere | Here | Test |\n")
	if !found {
		t.Fatal("README.md has no table of features")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")[1:]
	var elsewhere strings.Builder
	for _, row := range rows {
		elsewhere.WriteString(strings.Split(row, "|")[1])
	}
	for library, names := range known {
		for name := range strings.FieldsSeq(names) {
			if !strings.Contains(elsewhere.String(), "`"+name+"`") {
				t.Errorf("no row for %s of %s", name, library)
			}
		}
	}
	tests := allTests(t, "..")
	for _, row := range rows {
		cells := strings.Split(row, "|")
		named := 0
		for _, name := range regexp.MustCompile(`Test[A-Z]\w*`).FindAllString(cells[3], -1) {
			named++
			if !tests[name] {
				t.Errorf("there is no %s", name)
			}
		}
		if named == 0 {
			t.Errorf("no test is named in: %s", row)
		}
	}
}

// allTests are the names of the tests below a folder.
func allTests(t *testing.T, dir string) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(source, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
