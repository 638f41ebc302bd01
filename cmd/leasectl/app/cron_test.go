package app

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

// jobsAt writes files of jobs into the folder of a test, and returns their names.
func jobsAt(t *testing.T, texts ...string) (names []string) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		name := filepath.Join(dir, []string{"jobs.yaml", "more.yaml", "rest.yaml"}[i])
		must(t, os.WriteFile(name, []byte(text), 0o600))
		names = append(names, name)
	}
	return names
}

// All faults of all jobs of all files are said at once, each with its place, by --check and by a start.
func TestCronSaysAllThatIsWrongWithItsFiles(t *testing.T) {
	t.Parallel()
	files := jobsAt(t, `jobs:
  - name: one
    every: 5x
    command: ["/no/such/program"]
    maxAttempts: 0
    output: file:/no/such/dir/log
  - name: two
    schedule: 0 2 * *
    command: echo two
    priority: 8
    stopGrace: 2h
`, `jobs:
  - name: three
    every: 5m
    user: no-such-user
    command: echo three
    oncePerSlot: false
    startWithin: 5m
`, `defaults:
  failoverWithin: 5x
  every: 5m
jobs:
  - {name: four, command: echo four}
  - {name: five, command: echo five}
`)
	want := []string{
		files[2] + `:2:19: failoverWithin "5x": must be a duration such as `,
		files[0] + `:2:5: command "/no/such/program": `,
		files[0] + `:3:12: every "5x": must be a duration such as `,
		files[0] + `:5:18: maxAttempts "0": must be a whole number from 1 to 1000000: leave it out to try a slot as long as it lasts`,
		files[0] + `:2:5: output "file:/no/such/dir/log": no such file or directory`,
		files[0] + `:7:5: schedule "0 2 * *": `,
		files[0] + `:7:5: priority `,
		files[0] + `:11:16: stopGrace "2h": must be from 0s to 1h0m0s`,
		files[1] + `:2:5: user "no-such-user": this machine has none of that name`,
		files[1] + `:2:5: startWithin "5m": goes with oncePerSlot only`,
	}
	for _, args := range [][]string{{"cron", "--check"}, {"cron", "--store", "sqlite:" + filepath.Join(t.TempDir(), "leases.db")}} {
		got := leasectl(t, nil, append(args, files...)...)
		for _, line := range want {
			if !strings.Contains(got.stderr, "leasectl: "+line) {
				t.Errorf("leasectl %q doesn't say %q", args, line)
			}
		}
		if got.code != exit.Usage || got.stdout != "" || strings.Count(got.stderr, "leasectl: ") != len(want) {
			t.Errorf("leasectl %q = %+v, want the code %d and %d lines", args, got, exit.Usage, len(want))
		}
	}
}

func TestCronRefusesWhatIsNoJobs(t *testing.T) {
	t.Parallel()
	empty, process := jobsAt(t, "jobs: []\n")[0], jobsAt(t, "jobs:\n  - {name: a, every: 5m, command: x, listen: 9090}\n")[0]
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no file":               {[]string{"--check"}, "no file: name a crontab or a jobs.yaml"},
		"no such file":          {[]string{"--check", "/no/such/file"}, "/no/such/file: no such file or directory"},
		"no job":                {[]string{"--check", empty}, "no job"},
		"no store":              {[]string{empty}, "no store: name one with --store or LEASECTL_STORE"},
		"an option for all":     {[]string{"--check", process}, `"listen"`},
		"a check that goes on":  {[]string{"--check", "--watch", empty}, "--check and --watch: give only one of them"},
		"a roster and no other": {[]string{"--check", "--roster", "--no-roster", empty}, "--roster and --no-roster: give one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := leasectl(t, nil, append([]string{"cron"}, c.args...)...); got.code != exit.Usage || !strings.Contains(got.stderr, c.want) {
				t.Errorf("leasectl cron %q = %+v, want the code %d and %q", c.args, got, exit.Usage, c.want)
			}
		})
	}
}

func TestCheckShowsTheNextFiringsOfEachJobInItsZone(t *testing.T) {
	t.Parallel()
	files := jobsAt(t, `jobs:
  - name: night
    schedule: 30 2 * * *
    zone: Asia/Tokyo
    command: echo night
  - name: often
    every: 5m
    command: echo often
`)
	got := leasectl(t, nil, append([]string{"cron", "--check"}, files...)...)
	if got.code != exit.OK || got.stderr != "" {
		t.Fatalf("leasectl cron --check = %+v", got)
	}
	night, often, _ := strings.Cut(got.stdout, "worker type often · every 5m · job: start ≤1m15s, finish, tried until the slot ends · now ")
	if !strings.Contains(night, "worker type night · cron 30 2 * * * Asia/Tokyo · job: start ≤1h, finish, tried until the slot ends · now ") || strings.Count(night, " 02:30:00 JST") != 5 {
		t.Errorf("the job in a zone: %s, want five firings at 02:30 there", night)
	}
	if lines := strings.Count(often, "\n"); lines != 2+1+5 || !strings.Contains(often, "BEGUN BY") {
		t.Errorf("the other job: %s, want five firings", often)
	}
}

func TestAFileThatAnyoneMayWriteIsNoted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows doesn't say who may write a file")
	}
	file := jobsAt(t, "jobs:\n  - {name: a, every: 5m, command: echo a}\n")[0]
	for mode, want := range map[os.FileMode]bool{0o666: true, 0o664: false} {
		must(t, os.Chmod(file, mode))
		got := leasectl(t, nil, "cron", "--check", file)
		if noted := strings.Contains(got.stdout, "note: "+file+": anyone on this machine may write it"); got.code != exit.OK || noted != want {
			t.Errorf("mode %o: leasectl cron --check = %+v, want a note: %v", mode, got, want)
		}
	}
}

// A program is looked for where the job looks for it, a dir may come later, and a look at the file of the output leaves none.
func TestCheckLooksWhereTheJobDoes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "only-here"), []byte("#!/bin/sh\n"), 0o700))
	for command, want := range map[string]bool{"./only-here": false, "./reports/daily": true, "/bin/sh": false} {
		file := jobsAt(t, "jobs:\n  - {name: a, every: 5m, command: ["+command+"], dir: "+dir+"}\n")[0]
		got := leasectl(t, nil, "cron", "--check", file)
		if noted := strings.Contains(got.stdout, "note: "+file+`:2:5: a fails as long as its program "`+command+`" isn't there, in "`+dir+`"`); got.code != exit.OK || noted != want {
			t.Errorf("%s: leasectl cron --check = %+v, want the code %d, and a note: %v", command, got, exit.OK, want)
		}
	}
	const job = "jobs:\n  - name: a\n    every: 5m\n    command: [only-here]\n"
	log := filepath.Join(dir, "log")
	file := jobsAt(t, job+"    dir: /no/such/dir\n    env: {PATH: "+dir+"}\n    output: file:"+log+"\n")[0]
	got := leasectl(t, nil, "cron", "--check", file)
	if got.code != exit.OK || !strings.Contains(got.stdout, "note: "+file+`:2:5: a fails as long as its dir "/no/such/dir" isn't there`) {
		t.Errorf("leasectl cron --check = %+v, want the code %d, and a note of the dir", got, exit.OK)
	}
	if _, err := os.Lstat(log); err == nil {
		t.Errorf("leasectl cron --check has made %s", log)
	}
	if got := leasectl(t, []string{"PATH=" + dir}, "cron", "--check", jobsAt(t, job+"    env: {PATH: /usr/bin}\n")[0]); got.code != exit.Usage || !strings.Contains(got.stderr, `command "only-here": `) {
		t.Errorf("leasectl cron --check = %+v, want the code %d: it isn't in the PATH of the job", got, exit.Usage)
	}
}

// A disk that is full while a file is saved leaves it empty. Its jobs would end without a word.
func TestAFileThatIsEmptiedIsNotReloaded(t *testing.T) {
	t.Parallel()
	job := func(name string) string { return "jobs:\n  - {name: " + name + ", every: 5m, command: echo a}\n" }
	c := &cronFiles{app: &app{}, names: append(jobsAt(t, job("a")), jobsAt(t, job("b"))...), flags: &cronFlags{check: true}, roster: true}
	for i, step := range []struct {
		text string
		jobs int
		bad  bool
	}{{job("b"), 2, false}, {"", 1, true}, {"", 1, true}, {"# none\n", 1, false}, {"", 1, true}, {job("c"), 2, false}} {
		must(t, os.WriteFile(c.names[1], []byte(step.text), 0o600))
		jobs, _, faults := c.jobs(t.Context())
		want := c.names[1] + ": is empty, and wasn't before: if it is to have no jobs, write a comment into it"
		if len(jobs) != step.jobs || (len(faults) == 1) != step.bad || step.bad && faults[0].Error() != want {
			t.Errorf("step %d: %d jobs, %v, want %d, and a fault: %v", i, len(jobs), faults, step.jobs, step.bad)
		}
	}
	// A comment doesn't help where no file has a job.
	alone := &cronFiles{app: &app{}, names: jobsAt(t, job("a")), flags: c.flags, roster: true}
	for _, text := range []string{job("a"), "", "# none\n"} {
		must(t, os.WriteFile(alone.names[0], []byte(text), 0o600))
		_, _, faults := alone.jobs(t.Context())
		if want := alone.names[0] + ": no job in it"; text != job("a") && (len(faults) != 1 || faults[0].Error() != want) {
			t.Errorf("with %q in the only file: %v, want %q", text, faults, want)
		}
	}
	fresh := &cronFiles{app: &app{}, names: c.names, flags: c.flags, roster: true}
	must(t, os.WriteFile(c.names[1], nil, 0o600))
	if jobs, _, faults := fresh.jobs(t.Context()); len(jobs) != 1 || len(faults) > 0 {
		t.Errorf("at the start: %d jobs, %v, want 1 and no fault", len(jobs), faults)
	}
}

// Two jobs are the same exactly if a run of one can't be told from one of the other.
func TestJobsAreTheSameWhateverTheirPlaces(t *testing.T) {
	t.Parallel()
	read := func(text string) string {
		c := &cronFiles{app: &app{}, names: jobsAt(t, text), flags: &cronFlags{check: true}, roster: true}
		jobs, _, faults := c.jobs(t.Context())
		if len(jobs) != 1 || len(faults) > 0 {
			t.Fatalf("%s: %d jobs, %v", text, len(jobs), faults)
		}
		return jobs[0].same()
	}
	const job = "jobs:\n  - name: a\n    every: 5m\n    command: echo a\n"
	for _, text := range []string{job, job + "    user: nobody\n"} {
		if one, other := read(text), read("# a comment\n\n"+text); one != other {
			t.Errorf("%s differs from %s", one, other)
		}
	}
	for _, more := range []string{"    priority: 1\n", "    env: {A: b}\n", "    dir: /tmp\n", "    labels: {region: eu}\n"} {
		if one, other := read(job), read(job+more); one == other {
			t.Errorf("the job with %q is the same as without: %s", more, one)
		}
	}
	// A file that an option names is read with the jobs.
	for key, texts := range map[string][2]string{"exceptFile: ": {"2027-01-01\n", "2027-01-02\n"}, "onFailure: \"@": {"echo\n", "echo failed\n"}} {
		file := filepath.Join(t.TempDir(), "file")
		var as []string
		for _, text := range texts {
			must(t, os.WriteFile(file, []byte(text), 0o600))
			as = append(as, read(job+"    "+key+file+strings.Repeat(`"`, strings.Count(key, `"`))+"\n"))
		}
		if as[0] == as[1] {
			t.Errorf("the job is the same with another content of %s: %s", key, as[0])
		}
	}
}

func TestFilesWithoutAJobAreNamedAsTheyAreGiven(t *testing.T) {
	t.Parallel()
	names := jobsAt(t, "", "# none\n")
	got := leasectl(t, nil, append([]string{"cron", "--check"}, names...)...)
	if want := "leasectl: " + names[0] + ", " + names[1] + ": no job in it\n"; got.code != exit.Usage || !strings.HasPrefix(got.stderr, want) {
		t.Errorf("leasectl cron --check = %+v, want %q", got, want)
	}
}
