package jobfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const asCron = ` --once-per-slot=true --max-attempts=1 `

func TestACrontabIsReadAsCronDoes(t *testing.T) {
	wantJobs(t, "jobs", `#M=h  dom mon dow   command
SHELL=/bin/bash
PATH = "/usr/local/bin:/bin"
'A' =  ' b "c" '  
MAILTO=root
-*/5 *	* * 1-5   echo "100 \% of $HOME"
@daily	mail -s report alice%Dear Alice,%it is 5\% more.%
CRON_TZ=Europe/Berlin
HOME=/srv
SHELL=
PATH=/bin
  # name: nightly
  30 2 * * * A=x ./report  
`,
		`jobs:6:2 cron-4ac2e557c8 --cron=*/5 * * * 1-5`+asCron+`["/bin/bash" "-c" "echo \"100 % of $HOME\""] dir="~" env="SHELL=/bin/bash,PATH=/usr/local/bin:/bin,A= b \"c\" ,MAILTO=root"`,
		`jobs:7:1 cron-28dbaf9f28 --cron=@daily`+asCron+`["/bin/bash" "-c" "mail -s report alice"] stdin="Dear Alice,\nit is 5% more.\n" dir="~" env="SHELL=/bin/bash,PATH=/usr/local/bin:/bin,A= b \"c\" ,MAILTO=root"`,
		`jobs:13:3 nightly --cron=30 2 * * * --zone=Europe/Berlin`+asCron+`["/bin/sh" "-c" "A=x ./report  "] dir="/srv" env="A= b \"c\" ,MAILTO=root,CRON_TZ=Europe/Berlin,HOME=/srv,SHELL=,PATH=/bin"`,
	)
}

func TestPercentSignsAreReadAsCronDoes(t *testing.T) {
	for text, want := range map[string][2]string{
		`a`:          {`a`, ""},
		`a%`:         {`a`, ""},
		`a%b`:        {`a`, "b\n"},
		`a%b%`:       {`a`, "b\n"},
		`a%%b%c`:     {`a`, "\nb\nc\n"},
		`a\%b%c\%d`:  {`a%b`, "c%d\n"},
		`a\\%b`:      {`a\\`, "b\n"},
		`a\\\%b`:     {`a\\%b`, ""},
		`a\nb%c\n\\`: {`a\nb`, "c\\n\\\\\n"},
		`a\`:         {`a\`, ""},
	} {
		if command, input := standardInput(text); command != want[0] || input != want[1] {
			t.Errorf("standardInput(%q) = %q, %q, want %q", text, command, input, want)
		}
	}
}

func TestTheUserColumnIsThereByPathOrComment(t *testing.T) {
	const line = "17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly\n"
	withUser := `:1:1 cron-ee2a299b46 --cron=17 * * * *` + asCron + `["/bin/sh" "-c" "cd / && run-parts --report /etc/cron.hourly"] user="root" dir="~"`
	wantJobs(t, "cron.d/anacron", line, "cron.d/anacron"+withUser)
	wantJobs(t, "jobs", "#  slotlease:  user column\n"+line, "jobs"+strings.Replace(withUser, ":1:", ":2:", 1))
	wantJobs(t, "jobs", "# slotlease: no user column\n@daily root x\n", `jobs:2:1 cron-32ae6a5f83 --cron=@daily`+asCron+`["/bin/sh" "-c" "root x"] dir="~"`)
	wantJobs(t, "jobs", "@daily root x\n@hourly test x\n",
		`jobs:1:1 cron-32ae6a5f83 --cron=@daily`+asCron+`["/bin/sh" "-c" "root x"] dir="~"`,
		`jobs:2:1 cron-b73f9b409f --cron=@hourly`+asCron+`["/bin/sh" "-c" "test x"] dir="~"`)
	wantFaults(t, "jobs", "A=b\n@daily root x\n@hourly alice y\n",
		`jobs:2:8: "root" is a user or a command: write "# slotlease: user column" or "# slotlease: no user column" above`)
}

// The line of an older version would run beside that of the file.
func TestOfACronDCopiesAreLeftOut(t *testing.T) {
	for name, want := range map[string]struct {
		jobs int
		note string
	}{
		"cron.d/a": {1, ""}, "cron.d/a.dpkg-old": {0, "is left out, as by cron: its name is that of a copy"}, "cron.d/a.rpmsave": {0, "is left out, as by cron"},
		"cron.d/a~": {0, "is left out, as by cron"}, "cron.d/.placeholder": {0, "is left out, as by cron"},
		"cron.d/a.b": {1, "is left out by Debian's cron, since its name has a dot, but not here"}, "other/a.dpkg-old": {1, ""},
	} {
		jobs, notes, err := readText(t, name, "# slotlease: user column\n@daily root x\n")
		if err != nil || len(jobs) != want.jobs || want.note != "" && !strings.Contains(notes[0].Text, want.note) {
			t.Errorf("%s: %d jobs, %v, %v, want %+v", name, len(jobs), notes, err, want)
		}
	}
}

func TestWhatIsWrongInACrontabHasItsLine(t *testing.T) {
	wantFaults(t, "jobs", `A="b
@reboot x
@daily
5 4 * * x
@daily %x
# name: has blanks
@daily x
B='c'd
C='
`,
		`jobs:1:1: A: the value begins with a quote, which must end it, too`,
		`jobs:2:1: @reboot: is no time of the clock: let a systemd unit run it on each machine`,
		`jobs:3:1: no command: a line has five fields (minute, hour, day of month, month, day of week) or a word such as @daily, and a command`,
		`jobs:4:1: no command: a line has five fields (minute, hour, day of month, month, day of week) or a word such as @daily, and a command`,
		`jobs:5:1: no command: a line has five fields (minute, hour, day of month, month, day of week) or a word such as @daily, and a command`,
		`jobs:6:9: name "has blanks": character ' ' at position 4: use 1 to 63 of A-Z a-z 0-9 . _ - and begin with a letter or digit`,
		`jobs:8:1: B: the value begins with a quote, which must end it, too`,
		`jobs:9:1: C: the value begins with a quote, which must end it, too`,
	)
	wantFaults(t, "cron.d/jobs", "@daily root\n",
		`cron.d/jobs:1:1: no command: a line has five fields (minute, hour, day of month, month, day of week) or a word such as @daily, and a user and a command`)
}

func TestWhatCountsForNothingInACrontabIsNotedOnce(t *testing.T) {
	_, notes, err := readText(t, "jobs", "MAILTO=\nLOGNAME=x\n# name: x\n\nMAILTO=a\n@daily x\nMAILTO=b\nRANDOM_DELAY=5\n# name: y\n")
	must(t, err)
	var got []string
	for _, n := range notes {
		got = append(got, n.String()+": "+n.Text)
	}
	want := []string{
		"jobs: a crontab without a user column, as crontab -l shows it",
		"jobs:2: LOGNAME is ignored: it is always the user's",
		"jobs:3: names no job: no line of a job follows directly",
		"jobs:5: MAILTO is ignored: nobody gets the output by mail: it goes to that of leasectl",
		"jobs:8: RANDOM_DELAY is ignored: jobs begin on time: spread is an option in jobs.yaml",
		"jobs:9: names no job: no line of a job follows directly",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestWithoutCRON_TZTheZoneIsThatOfTheMachine(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("jobs", []byte("@daily x\n@daily y\nCRON_TZ=Asia/Tokyo\n@daily z\n"), 0o600))
	jobs, notes, err := (&reader{machine: debian("Europe/Berlin")}).read([]string{"jobs"})
	must(t, err)
	for i, want := range []string{"Europe/Berlin", "Europe/Berlin", "Asia/Tokyo"} {
		if got := jobs[i].Options[1]; got.Name != "zone" || got.Value != want {
			t.Errorf("job %d has %v, want the zone %s", i, got, want)
		}
	}
	if got, want := notes[1].Text, "without CRON_TZ the times are those of this machine's time zone, Europe/Berlin"; len(notes) != 2 || got != want {
		t.Errorf("notes = %v, want %q", notes, want)
	}
	if _, _, err = (&reader{machine: debian("")}).read([]string{"jobs"}); err == nil || err.Error() != "jobs:1:1: no zone: set CRON_TZ above, such as CRON_TZ=Europe/Berlin" {
		t.Errorf("without a zone: %v", err)
	}
}

func TestTheZoneOfAMachineHasAName(t *testing.T) {
	dir := t.TempDir()
	link, named, file := filepath.Join(dir, "localtime"), filepath.Join(dir, "timezone"), filepath.Join(dir, "file")
	for _, err := range []error{
		os.Symlink("../usr/share/zoneinfo/Europe/Berlin", link), os.WriteFile(named, []byte("Asia/Tokyo\n"), 0o600), os.WriteFile(file, nil, 0o600),
	} {
		must(t, err)
	}
	for _, c := range []struct{ tz, link, named, want string }{
		{"", link, named, "Europe/Berlin"},
		{":America/Lima", link, named, "America/Lima"},
		{"", file, named, "Asia/Tokyo"},
		{"", dir + "/none", named, "UTC"},
		{"Etc/UTC", link, named, "UTC"},
		{"", file, dir + "/none", ""},
		{"CET-1CEST", link, named, ""},
	} {
		if got, err := zoneBy(c.tz, c.link, c.named); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("zoneBy(%q, …) = %q, %v, want %q", c.tz, got, err, c.want)
		}
	}
}

// An empty jobs.yaml is no crontab, and no text says which of them a file without a job is.
func TestAFileWithoutAJobIsCalledNoCrontab(t *testing.T) {
	for _, text := range []string{"", "# to come\n"} {
		if jobs, notes, err := readText(t, "jobs.yaml", text); err != nil || len(jobs)+len(notes) > 0 {
			t.Errorf("%q has %v, %v, %v, want nothing", text, jobs, notes, err)
		}
	}
}
