package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
)

// aDay is a job of a slot that has begun and lasts, so that it runs once, at once.
const aDay = "    every: 24h\n    startWithin: 24h\n"

// startCron starts leasectl cron with a file of jobs.
func startCron(t *testing.T, storeArg string, flags []string, text string) (p *process, file string) {
	t.Helper()
	file = jobsAt(t, text)[0]
	return start(t, append(append([]string{"cron", "--store", storeArg, "--instance-id", "a"}, flags...), file)...), file
}

// rewrite replaces a file of jobs in one step.
func rewrite(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.WriteFile(file+".new", []byte(text), 0o600))
	must(t, os.Rename(file+".new", file))
}

// pids are the processes that a job was started as, by the log.
func pids(p *process, job string) (all []string) {
	for _, m := range regexp.MustCompile(`(?m)`+job+`: slot .*: command started, pid (\d+)$`).FindAllStringSubmatch(p.output(), -1) {
		all = append(all, m[1])
	}
	return all
}

// A job that hangs and forks, one that floods its output, and one that fails harm no other: that one is done in each slot.
func TestAJobHarmsNoOther(t *testing.T) {
	brief(t)
	t.Parallel()
	l, storeArg := newLedger(t)
	p, _ := startCron(t, storeArg, nil, `jobs:
  - name: hangs
`+aDay+`    command: trap "" TERM; for i in 1 2 3; do (trap "" TERM; setsid sleep 1000 &) done; exec sleep 1000
  - name: floods
`+aDay+`    command: yes flood
  - name: fails
    every: 2s
    command: exit 3
  - name: works
    every: 2s
    command: printf "made it in "; sleep 0.05; printf "$LEASE_SLOT_START"
`)
	// A command that is stopped may have written the beginning of a line alone; the rest of a line in pieces would have no such beginning.
	whole := regexp.MustCompile(`(?m)^(works: made it in (\S+Z)?|floods: flood|\d{4}-\S+Z \w+ +.*|try: .*)?$`)
	procs.Eventually(t, "five slots in which the job worked", func() bool { return strings.Count(p.output(), "works: made it in ") >= 5 })
	p.await("hangs: slot ")
	p.signal(syscall.SIGTERM)
	p.exits(exit.OK)
	p.gone()
	for _, line := range strings.Split(p.output(), "\n") {
		if !whole.MatchString(line) {
			t.Fatalf("a line is in pieces: %.200q", line)
		}
	}
	for _, name := range []string{"hangs", "floods"} {
		if tail, _, err := l.Tail(t.Context(), name, 1); err != nil || len(tail) != 1 || tail[0].Kind != store.KindRelease {
			t.Errorf("%s: the head is %+v, %v, want the release of its lease", name, tail, err)
		}
	}
}

func TestCronReloadsItsFiles(t *testing.T) {
	t.Parallel()
	const stays = "  - name: stays\n" + aDay + "    command: exec sleep 1000\n"
	for _, flags := range [][]string{nil, {"--watch"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			t.Parallel()
			_, storeArg := newLedger(t)
			told, under := serviceManager(t)
			file := jobsAt(t, "jobs:\n"+stays)[0]
			p := startUnder(t, under, append(append([]string{"cron", "--store", storeArg, "--listen", "0"}, flags...), file)...)
			p.await("stays: slot ")
			told.await(t, "READY=1")
			shows := func(line string) {
				t.Helper()
				if _, body := probed(t, p, "/metrics"); !strings.Contains(body, "\n"+line+"\n") {
					t.Errorf("GET /metrics: %.3000s, want %s", body, line)
				}
			}
			reload := func(text string) {
				rewrite(t, file, text)
				if flags == nil {
					p.signal(syscall.SIGHUP)
				}
			}
			reload("jobs:\n" + stays + "  - name: wrong\n    every: 5x\n    command: echo\n")
			p.await("ERROR not reloaded, all jobs stay as they are: " + file + `:7:12: every "5x": must be a duration such as `)
			shows("leasectl_reload_failed 1")
			reload("# more\njobs:\n  - name: comes\n" + aDay + "    command: echo is here\n" + stays)
			p.await("reloaded: 1 job unchanged, 0 changed, 1 added, 0 removed")
			p.await("comes: is here\n")
			shows("leasectl_reload_failed 0")
			told.await(t, "RELOADING=1")
			told.await(t, "MONOTONIC_USEC=")
			reload("jobs:\n" + stays)
			p.await("reloaded: 1 job unchanged, 0 changed, 0 added, 1 removed")
			p.await("comes: stopping: no file has the job any more")
			p.await("comes: stopped")
			p.signal(syscall.SIGTERM)
			if code := p.wait(); code != exit.OK || len(pids(p, "stays")) != 1 {
				t.Errorf("exit code %d, and the job that stays was started as %v, want %d, and once", code, pids(p, "stays"), exit.OK)
			}
		})
	}
}

// A command by another user has the rights and the environment of that user, and nothing of root's.
func TestAJobOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		unavailable(t, "not root, who alone may run commands by other users")
	}
	_, storeArg := newLedger(t)
	p, _ := startCron(t, storeArg, nil, `jobs:
  - name: other
    user: nobody
    dir: /
    env: {MORE: "1", SHELL: /bin/false}
`+aDay+`    command: |
      echo "id $(id -u):$(id -g):$(id -G), in $PWD"; env | sort | sed "s/^LEASE_.*//"
      echo again > /dev/stderr; [ -w /etc/shadow ] || echo no rights; trap "" TERM; while :; do sleep 0.05; done
`)
	p.await("other: no rights\n")
	p.await("other: again\n")
	for _, want := range []string{
		"id 65534:65534:65534, in /", "HOME=/nonexistent", "LOGNAME=nobody", "PATH=/usr/bin:/bin", "SHELL=/bin/false", "USER=nobody", "MORE=1",
	} {
		p.await("other: " + want + "\n")
	}
	if strings.Contains(p.output(), markName) {
		t.Error("the command has the environment of leasectl")
	}
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != exit.OK {
		t.Errorf("exit code %d, want %d: root may kill it", code, exit.OK)
	}
}

// What leasectl has inherited reaches a command of its own user, and none of another.
func TestFilesThatAreInheritedStayFromOtherUsers(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		unavailable(t, "not root, who alone may run commands by other users")
	}
	_, storeArg := newLedger(t)
	const looks = `if [ -e /proc/self/fd/9 ] || [ -e /proc/self/fd/1099 ]; then echo has it; else echo has nothing; fi; sleep 1000`
	file := jobsAt(t, "jobs:\n  - name: other\n    user: nobody\n    dir: /\n"+aDay+"    command: '"+looks+"'\n  - name: own\n"+aDay+"    command: '"+looks+"'\n")[0]
	p := startUnder(t, []string{"bash", "-c", `exec 9</etc/shadow 1099</etc/shadow; exec "$@"`, "bash"}, "cron", "--store", storeArg, file)
	p.await("other: has nothing\n")
	p.await("own: has it\n")
	p.signal(syscall.SIGTERM)
	p.exits(exit.OK)
}

// Many users of services have a home that isn't there, and systemd gives the services of root no HOME.
func TestJobsWhoseUsersHaveNoHome(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		unavailable(t, "not root, who alone may run commands by other users")
	}
	_, storeArg := newLedger(t)
	file := jobsAt(t, "jobs:\n  - name: homeless\n    user: nobody\n    dir: \"~\"\n"+aDay+"    command: echo in $PWD; sleep 1000\n  - name: own\n    dir: \"~\"\n"+aDay+"    command: echo in $PWD, $HOME; sleep 1000\n")[0]
	p := startUnder(t, []string{"env", "-u", "HOME"}, "cron", "--store", storeArg, file)
	p.await(file + `:2:5: homeless begins in /: there is no home "/nonexistent"`)
	p.await("homeless: in /\n")
	p.await("own: in /root, /root\n")
	p.signal(syscall.SIGTERM)
	p.exits(exit.OK)
}

func TestOnlyRootRunsJobsOfOtherUsers(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		unavailable(t, "not root, who alone can become another")
	}
	file := jobsAt(t, "jobs:\n  - name: other\n    user: root\n    every: 5m\n    command: id\n")[0]
	must(t, os.Chmod(filepath.Dir(file), 0o755))
	own := filepath.Dir(file)
	for dir := filepath.Dir(own); dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755) // of the test's own folders
	}
	must(t, os.Chmod(file, 0o644))
	_, self := unkillable(t) // a copy of leasectl that others may run
	p := startUnder(t, []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", "sh", "-c", `shift; exec "$0" "$@"`, self}, "cron", "--store", "sqlite:/tmp/none/leases.db", file)
	if code := p.wait(); code != exit.Usage || !strings.Contains(p.output(), file+`:2:5: user "root": only root may run a command by another user`) {
		t.Errorf("exit code %d, and %s, want %d, and why", code, p.output(), exit.Usage)
	}
}

func TestCronShowsAllJobsToThoseOutside(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	told, under := serviceManager(t)
	file := jobsAt(t, "jobs:\n  - name: runs\n"+aDay+"    command: exec sleep 1000\n  - name: ends\n"+aDay+"    command: echo\n    onSuccess: echo told\n    onFailure: echo\n  - name: waits\n    schedule: 0 0 1 1 *\n    command: echo\n")[0]
	p := startUnder(t, under, "cron", "--store", storeArg, "--listen", "0", file)
	p.await("runs: slot ")
	told.await(t, "STATUS=3 jobs, of which 1 run: runs")
	told.await(t, "WATCHDOG=1")
	for _, path := range []string{"/healthz", "/readyz"} {
		if ok, body := probed(t, p, path); !ok || !strings.Contains(body, `"workerType":"runs"`) || !strings.Contains(body, `"workerType":"waits"`) {
			t.Errorf("GET %s: %v, %s, want both jobs, in good health", path, ok, body)
		}
	}
	_, body := probed(t, p, "/status")
	var status struct {
		Store   string
		Workers []struct {
			WorkerType, Schedule string
			Running              bool
		}
	}
	if err := json.Unmarshal([]byte(body), &status); err != nil || len(status.Workers) != 3 || !status.Workers[1].Running || status.Workers[2].Schedule != "cron 0 0 1 1 *" || status.Store != storeArg {
		t.Errorf("GET /status: %s, %v, want both jobs", body, err)
	}
	if _, body := probed(t, p, "/metrics"); !strings.Contains(body, `slotlease_lease_holding{worker_type="runs"} 1`) || !strings.Contains(body, `slotlease_lease_holding{worker_type="waits"} 0`) {
		t.Errorf("GET /metrics: %.3000s, want both jobs", body)
	}
	procs.Eventually(t, "the notifications are counted", func() bool {
		answer, err := http.Get("http://" + listensAt(p) + "/metrics") //nolint:noctx // The server cuts it off after 5 s.
		if err != nil {
			return false // On a busy machine an answer may be cut off.
		}
		defer answer.Body.Close()
		all, _ := io.ReadAll(answer.Body)
		body := string(all)
		return strings.Contains(body, `leasectl_notifications_total{event="success",outcome="sent",worker_type="ends"} 1`) &&
			strings.Contains(body, `leasectl_notifications_total{event="failure",outcome="failed",worker_type="ends"} 0`)
	})
	p.signal(syscall.SIGINT)
	p.exits(exit.OK)
	told.await(t, "STOPPING=1")
}

// The lease of a job whose processes can't be killed is kept; the others go on, and at the end that is the exit code.
func TestAJobThatCanNotBeKilledHarmsNoOther(t *testing.T) {
	t.Parallel()
	rooted, self := unkillable(t)
	dir := filepath.Dir(self)
	file := filepath.Join(dir, "jobs.yaml")
	must(t, errors.Join(os.WriteFile(dir+"/up", nil, 0o666), os.Chmod(dir+"/up", 0o666)))
	t.Cleanup(func() {
		for _, line := range procs.Lines(dir + "/up") {
			if pid, err := strconv.Atoi(line); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	text := fmt.Sprintf("jobs:\n  - name: stays\n"+aDay+"    command: '%s %s/up & until [ -s %s/up ]; do sleep 0.01; done; echo started'\n  - name: works\n    every: 4s\n    failoverWithin: 2s\n    command: echo made it\n", rooted, dir, dir)
	must(t, os.WriteFile(file, []byte(text), 0o644))
	p := startUnder(t, []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", "sh", "-c", `shift; exec "$0" "$@"`, self}, "cron", "--store", "sqlite:"+dir+"/leases.db", file)
	p.await("stays: slot ")
	p.await("the lease is not released, since the command may still work")
	before := strings.Count(p.output(), "works: made it")
	procs.Eventually(t, "the other job goes on", func() bool { return strings.Count(p.output(), "works: made it") > before+1 })
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done: // What survives has the output open, so that it doesn't end.
	case <-suites.Deadline(t).Done():
		t.Fatal("leasectl doesn't end")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != exit.Survivors {
		t.Errorf("exit code %d, want %d", code, exit.Survivors)
	}
}
