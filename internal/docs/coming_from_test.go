package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// known are the options and features of other libraries that docs/coming-from.md
// says something about, by what the table calls the library.
var known = map[string]string{
	"client-go": `Lock Name Coordinated LeaseDuration RenewDeadline RetryPeriod ReleaseOnCancel WatchDog HealthzAdaptor
		OnStartedLeading OnStoppedLeading OnNewLeader GetLeader IsLeader RunOrDie`,
	"LE": `LockKey LockExpiry RenewInterval RetryInterval RetryBackoffFactor RetryJitter MaxRetryInterval MaxRetryAttempts
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
	"EShopWorld":               `IDistributedLock`,
	"EShopWorld.WorkerProcess": `WorkerType Priority LeaseInterval ElectionDelay InstanceId`,
}

// No row of the table of other libraries' features without a test.
func TestComingFromNamesTestsThatExist(t *testing.T) {
	rows := read(t, "docs/coming-from.md").table(t, "| Elsewhere | Here | Test |")
	for library, names := range known {
		for name := range strings.FieldsSeq(names) {
			if !slices.ContainsFunc(rows, func(row []string) bool {
				return strings.Contains(row[0], "`"+name+"`") && strings.Contains(row[0], library)
			}) {
				t.Errorf("no row for %s of %s", name, library)
			}
		}
	}
	tests := source(t, true, "")
	for _, row := range rows {
		names := regexp.MustCompile(`Test[A-Z]\w*`).FindAllString(row[2], -1)
		for _, name := range names {
			if !strings.Contains(tests, "\nfunc "+name+"(") {
				t.Errorf("there is no %s", name)
			}
		}
		if len(names) == 0 {
			t.Errorf("no test is named in: %s", strings.Join(row, " | "))
		}
	}
}
