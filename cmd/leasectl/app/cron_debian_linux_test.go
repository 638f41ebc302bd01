package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// debianVariable names a folder in which packages of Debian are unpacked: cron and some that have jobs. make cron-debian makes it.
const debianVariable = "SLOTLEASE_DEBIAN"

const (
	cronSpeed = 60               // a minute of cron's is a second
	cronLate  = 90 * time.Second // for which a command may be on its way, by cron's clock, on a machine that is busy
)

// firing is a command that is run: by whom, by which shell, with what in its environment.
type firing struct{ user, shell, command, home, path string }

// fired are the times of each, in order.
type fired map[firing][]time.Time

// The real cron of Debian runs the machine's own crontabs, and those of packages, for two hours of a clock that is sped up.
// leasectl cron takes the same files, and its jobs run on a clock that is mocked: the same commands begin in the same
// minutes, by the same users and shells, with the same HOME and PATH. No command is run: the shell writes down what it is told.
func TestTheJobsOfDebianBeginAsByCron(t *testing.T) {
	packages := os.Getenv(debianVariable)
	if packages == "" {
		t.Skipf("%s names no folder with cron: make cron-debian", debianVariable)
	}
	for name, hours := range map[string]string{"the small hours of a Sunday": "2000-10-01 02:30:00", "its morning, the first of a month": "2000-10-01 05:30:00", "a noon": "2000-03-08 11:00:00"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runtime.LockOSThread() // It has mounts of its own, and ends with the test.
			from, err := time.ParseInLocation(time.DateTime, hours, time.Local)
			must(t, err)
			marks := debianWorld(t, packages)
			read := &cronFiles{app: &app{}, names: append([]string{"/etc/crontab"}, globbed(t, "/etc/cron.d/*")...), flags: &cronFlags{}, roster: true}
			jobs, notes, faults := read.jobs(t.Context())
			if len(faults) > 0 {
				t.Fatal(errors.Join(faults...))
			}
			until := from.Add(2 * time.Hour)
			want := runByCron(t, packages, marks, from, until)
			var got fired
			synctest.Test(t, func(t *testing.T) { got = runByLeasing(t, jobs, from, until) })
			n := compareFirings(t, got, want)
			t.Logf("%d jobs of %q, with %d notes: %d firings of %d of them in two hours, the same as by cron", len(jobs), read.names, len(notes), n, len(want))
		})
	}
}

// debianWorld gives this thread, and the processes that it starts, an /etc with the files of packages, an empty /var/spool, and
// shells that write down what they are told.
func debianWorld(t *testing.T, packages string) (marks string) {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o755)
	}
	marks = filepath.Join(dir, "marks")
	shell := fmt.Sprintf("#!%[1]s/dash\necho \"$(date +%%s.%%N)|$(id -un)|$0|$HOME|$PATH|$2\" >> %[1]s/marks\n", dir)
	must(t, errors.Join(os.WriteFile(dir+"/sh", []byte(shell), 0o700), os.WriteFile(marks, nil, 0o600)))
	must(t, errors.Join(os.Chmod(dir+"/sh", 0o755), os.Chmod(marks, 0o666)))
	for _, c := range [][]string{{"cp", "/bin/dash", dir + "/dash"}, {"cp", "-a", "/etc", dir + "/etc"}, {"cp", "-a", packages + "/etc/.", dir + "/etc"}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", c, err, out)
		}
	}
	must(t, errors.Join(unix.Unshare(unix.CLONE_NEWNS|unix.CLONE_FS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")))
	for from, to := range map[string]string{dir + "/etc": "/etc", dir + "/sh": "/usr/bin/dash"} {
		must(t, unix.Mount(from, to, "", unix.MS_BIND, ""))
	}
	for _, at := range []string{"/var/spool", "/run"} {
		must(t, unix.Mount("none", at, "tmpfs", 0, ""))
	}
	must(t, os.MkdirAll("/var/spool/cron/crontabs", 0o700))
	return marks
}

func globbed(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("Glob(%s) = %q, %v", pattern, names, err)
	}
	return names
}

// runByCron lets cron run from one time of its clock to another, and half a minute before both.
func runByCron(t *testing.T, packages, marks string, from, until time.Time) fired {
	t.Helper()
	from = from.Add(-30 * time.Second)
	c := exec.Command("faketime", "-f", fmt.Sprintf("@%s x%d", from.Format(time.DateTime), cronSpeed), packages+"/usr/sbin/cron", "-f")
	c.Env = append(os.Environ(), "FAKETIME_NO_CACHE=1")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var said strings.Builder
	c.Stdout, c.Stderr = &said, &said
	began := time.Now()
	must(t, c.Start())
	time.Sleep(time.Until(began.Add((until.Sub(from) - 30*time.Second) / cronSpeed)))
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	_ = c.Wait()
	all := fired{}
	lines, err := os.ReadFile(marks)
	if err != nil || len(lines) == 0 {
		t.Fatalf("cron has run nothing: %v: %s", err, &said)
	}
	for line := range strings.Lines(string(lines)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "|", 6)
		seconds, err := strconv.ParseFloat(f[0], 64)
		if err != nil {
			t.Fatalf("the mark %q: %v", line, err)
		}
		real := time.UnixMicro(int64(seconds * 1e6))
		what := firing{f[1], f[2], strings.TrimSpace(f[5]), f[3], f[4]}
		all[what] = append(all[what], from.Add(real.Sub(began)*cronSpeed))
	}
	return all
}

// runByLeasing lets workers lease for jobs on a mock clock that has one day before these two hours, so that what begins late is
// over. The client is that of leasectl cron; in place of the command's guard there is a note of it.
func runByLeasing(t *testing.T, jobs []cronJob, from, until time.Time) fired {
	t.Helper()
	time.Sleep(time.Until(from.AddDate(0, 0, -1)))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	all := fired{}
	client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{})
	var workers []*workerlease.WorkerLease
	for _, j := range jobs {
		env := map[string]string{}
		for _, pair := range j.account.environ(nil, j.Job) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		what := firing{j.User, j.Command[0], strings.TrimSpace(j.Command[len(j.Command)-1]), env["HOME"], env["PATH"]}
		w, err := client.StartTask(ctx, j.timing.Options, func(context.Context, workerlease.Lease) error {
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now(); !now.Before(from) && now.Before(until) {
				all[what] = append(all[what], now)
			}
			return nil
		})
		must(t, err)
		workers = append(workers, w)
	}
	time.Sleep(time.Until(until))
	stop()
	for _, w := range workers {
		_ = w.StopLeasing(context.WithoutCancel(ctx))
	}
	synctest.Wait()
	mu.Lock()
	defer mu.Unlock()
	return all
}

// compareFirings demands that each job has begun as often as by cron, and in the first second of each minute in which cron began it. It
// returns how many times these were.
func compareFirings(t *testing.T, got, want fired) (n int) {
	t.Helper()
	for what, times := range got {
		if len(want[what]) == 0 {
			t.Errorf("%+v began at %v, and never by cron", what, times)
		}
	}
	for what, times := range want {
		slices.SortFunc(times, time.Time.Compare)
		n += len(times)
		if same := slices.EqualFunc(got[what], times, func(our, their time.Time) bool {
			minute := our.Truncate(time.Minute)
			return our.Sub(minute) < time.Second && !their.Before(minute) && their.Before(minute.Add(cronLate))
		}); !same {
			t.Errorf("%+v began at %v, and by cron at %v", what, got[what], times)
		}
	}
	return n
}
