package convert

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/jobfile"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/slots"
)

// readBack reads what leasectl writes of what was converted: nothing is lost there.
func readBack(t *testing.T, text []byte) []jobfile.Job {
	t.Helper()
	var written bytes.Buffer
	if _, err := (display.Writer{To: &written}).Write(text); err != nil || !bytes.Equal(written.Bytes(), text) {
		t.Errorf("%v: leasectl doesn't write all of %q", err, text)
	}
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	jobs, _, err := jobfile.Read(path)
	if err != nil {
		t.Fatalf("%v, of\n%s", err, text)
	}
	return jobs
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	t.Setenv("TZ", "America/Lima")
	for _, c := range []struct {
		golden string
		write  func(...string) ([]byte, error)
		names  []string
		jobs   int
	}{
		{"debian.yaml", Crontabs, []string{"testdata/cron.d/debian"}, 4},
		{"others.yaml", Crontabs, []string{"testdata/cron.d/others"}, 6},
		{"kubernetes.yaml", CronJobs, []string{"testdata/cronjobs.yaml"}, 3},
		{"systemd.yaml", Timers, []string{"testdata/backup.timer", "testdata/sweep.timer", "testdata/sweep-tmp.service"}, 2},
	} {
		t.Run(c.golden, func(t *testing.T) {
			text, err := c.write(c.names...)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, c.golden, string(text))
			if jobs := readBack(t, text); len(jobs) != c.jobs {
				t.Errorf("%d jobs, want %d", len(jobs), c.jobs)
			}
		})
	}
}

func TestCharactersByTheirNumbersAreLacked(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.timer": "[Timer]\nOnCalendar=daily\n", "a.service": "[Service]\nExecStart=/bin/echo \\x41 \\101 a\\tb\nEnvironment=B=\\u00e4\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Timers(filepath.Join(dir, "a.timer"))
	for _, want := range []string{`no equivalent: \x41 and other characters by their numbers`, `no equivalent: \u00e4 and other`} {
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("Timers() = %s, %v, want %q", got, err, want)
		}
	}
}

func TestABackslashThatIsEscapedBeginsNoNumber(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.timer": "[Timer]\nOnCalendar=daily\n", "a.service": "[Service]\nExecStart=/bin/echo C:\\\\x41 \\\\101\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Timers(filepath.Join(dir, "a.timer"))
	if err != nil || strings.Contains(string(got), "by their numbers") || !strings.Contains(string(got), `C:\x41`) {
		t.Errorf("Timers() = %s, %v, want the backslashes, and nothing lacked", got, err)
	}
}

// wantSameJobs demands that a crontab and its jobs.yaml have the same jobs.
func wantSameJobs(t *testing.T, name string) {
	t.Helper()
	want, _, err := jobfile.ReadCrontabs(name)
	if err != nil {
		return
	}
	text, err := Crontabs(name)
	if err != nil {
		if !strings.Contains(err.Error(), "UTF-8") {
			t.Fatal(err)
		}
		return
	}
	got := readBack(t, text)
	for _, jobs := range [][]jobfile.Job{got, want} {
		for i := range jobs {
			slices.SortFunc(jobs[i].Options, func(a, b jobfile.Option) int { return strings.Compare(a.Name, b.Name) })
			slices.Sort(jobs[i].Env)
		}
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreTypes(jobfile.Place{}), cmpopts.IgnoreFields(jobfile.Job{}, "Keyed"), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("the jobs of the crontab and of jobs.yaml (-want +got):\n%s\n%s", d, text)
	}
}

func TestACrontabAndItsJobsYAMLAreTheSameJobs(t *testing.T) {
	t.Setenv("TZ", "Europe/Berlin")
	wantSameJobs(t, "testdata/cron.d/debian")
	wantSameJobs(t, "testdata/cron.d/others")
}

func FuzzCrontabs(f *testing.F) {
	for _, seed := range []string{
		"@daily x", "A=b\nB='  '\n@daily x%  y%\n@hourly  yes  ", "SHELL=bash\nHOME=~\n* * * * * echo 'a: b' # c", "# slotlease: user column\n@daily null 1", "@daily \x01\t\x7f\u2028\ufeff", "@daily a\u200bb\U000e0001", "B=\xaa\n@daily x\n@hourly x\n", "A\u200b=\u2800\n@daily a%\u200b\n",
		"# name: x\n@daily -\n# name: y\n@daily - a\n", "@daily %\n @daily  \n", "A=\"\t\"\n@daily x\r\n", "@daily x%\ty\n", "@reboot x", "0x1=1\n@daily |",
	} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		t.Setenv("TZ", "UTC")
		name := filepath.Join(dir, "crontab")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		wantSameJobs(t, name)
	})
}

// FuzzUnits reads texts as a timer and its service.
func FuzzUnits(f *testing.F) {
	f.Add("[Timer]\nOnCalendar=daily\n", "[Service]\nExecStart=a 'b \\\n c'\nExecStart=d\nEnvironment=A=b\n")
	f.Add("[Timer]\nOnCalendar=*:0/15\nOnUnitActiveSec=1.5h\n", "[Service]\nExecStart=\"a\\x\"\nTimeoutStartSec=1y 2h\nUser=\x01\n")
	f.Add("[Timer\xa3]\nOnCalendar@ily\n", "[Service]\nExecStart=a\nExecS\x01ar =d\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, timer, service string) {
		t.Setenv("TZ", "UTC")
		for name, text := range map[string]string{"a.timer": timer, "a.service": service} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := Timers(filepath.Join(dir, "a.timer")); err == nil {
			readBack(t, text)
		}
	})
}

// FuzzCronJobs reads texts as manifests.
func FuzzCronJobs(f *testing.F) {
	for _, name := range []string{"testdata/cronjobs.yaml"} {
		text, _ := os.ReadFile(name)
		f.Add(string(text))
	}
	f.Add("kind: CronJob\nspec: &a\n  jobTemplate: {spec: {template: {spec: {containers: [*a]}}}}\n  env: [{name: '', value: x}, {name: A=, value: y}]")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(dir, "cronjobs.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := CronJobs(name); err == nil {
			readBack(t, text)
		}
	})
}

func TestNamesAreWorkerTypesAndDiffer(t *testing.T) {
	var f file
	long := strings.Repeat("x", 70)
	for _, c := range [][2]string{{"a", "a"}, {"a", "a-2"}, {"a", "a-3"}, {"_.a b/c@d", "a-b-c-d"}, {"", "job"}, {"é", "job-2"}, {long, long[:63]}, {long, long[:61] + "-2"}} {
		if got := f.workerType(c[0]); got != c[1] {
			t.Errorf("workerType(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}

func TestWhatCantBeConvertedIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"none.yaml": "kind: Job\n", "bad.yaml": "a: [", "a.timer": "[Timer]\n", "b.timer": "", "b.service": "[Service]\n", "latin": "# slotlease: no user column\n@daily \xe4\n", "cron": "@daily\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		write func(...string) ([]byte, error)
		name  string
		want  string
	}{
		{CronJobs, "none.yaml", "none.yaml: has no CronJob"},
		{CronJobs, "bad.yaml", "bad.yaml: line 1: did not find expected node content"},
		{CronJobs, "nowhere", "nowhere: no such file or directory"},
		{Timers, "a.timer", "a.service: no such file or directory"},
		{Timers, "b.timer", "b.service: has no ExecStart"},
		{Timers, "b.service", "no timer: name a file whose name ends in .timer"},
		{Timers, "latin", "latin: is neither a .timer nor a .service"},
		{Crontabs, "latin", `latin:2:1: has a text that is no UTF-8, as jobs.yaml must be: convert the file to it first`},
		{Crontabs, "cron", "cron:1:1: no command: a line has five fields (minute, hour, day of month, month, day of week) or a word such as @daily, and a command"},
	} {
		if _, err := c.write(c.name); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestCalendarsAreCronWhereCronHasThem(t *testing.T) {
	for calendar, want := range map[string]string{
		"daily":                        "0 0 * * *",
		"Weekly Europe/Berlin":         "0 0 * * 1 in Europe/Berlin",
		"minutely":                     "* * * * *",
		"quarterly UTC":                "0 0 1 1,4,7,10 * in UTC",
		"*-*-* 02:30:00":               "30 2 * * *",
		"02:30":                        "30 2 * * *",
		"*:0/15":                       "*/15 * * * *",
		"*:5/20":                       "5-59/20 * * * *",
		"*:0/90":                       "0 * * * *",
		"8..17:00,30":                  "0,30 8-17 * * *",
		"0/2:00:00":                    "0 */2 * * *",
		"Mon..Fri 09:00":               "0 9 * * 1-5",
		"Fri..Mon":                     "0 0 * * 0,1,5,6",
		"sat,Thursday *-*-* 00:00 UTC": "0 0 * * 4,6 in UTC",
		"*-*-1..7/2 4:00":              "0 4 1-7/2 * *",
		"*-1,7-01":                     "0 0 1 1,7 *",
		"10-25":                        "0 0 25 10 *",
		"2026-01-01":                   "error: cron has no years",
		"*-*-* *:*:30":                 "error: cron has no seconds",
		"*:*:0/10":                     "error: cron has no seconds",
		"*-02~03":                      "0 0 L-2 2 *",
		"*-*~1 04:00":                  "0 4 L * *",
		"*-*~1..3":                     "error: cron counts one day from the end of a month",
		"Fri *-*-13":                   "error: cron takes a day of the week or of the month, and not both",
		"Foo *-*-* 00:00":              `error: "Foo" is no day of the week`,
		"25:00":                        `error: "25" is no number from 0 to 23, no range and no step`,
		"5..3:00":                      `error: "5..3" is no number from 0 to 23, no range and no step`,
	} {
		spec, zone, err := cronOf(calendar)
		got := spec
		if zone != "" {
			got += " in " + zone
		}
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("cronOf(%q) = %s, want %s", calendar, got, want)
		}
		if _, wrong := slots.Cron(spec, zone); err == nil && wrong != nil {
			t.Errorf("cronOf(%q) = %s: %v", calendar, got, wrong)
		}
	}
}

func TestWordsAndSpansAreReadAsSystemdDoes(t *testing.T) {
	for line, want := range map[string][]string{
		"":                         nil,
		"  a  b\tc ":               {"a", "b", "c"},
		`"a b"'c "d' "" e\ f \n\s`: {`a bc "d`, "", "e f", "\n "},
	} {
		if got := words(line); !slices.Equal(got, want) {
			t.Errorf("words(%q) = %q, want %q", line, got, want)
		}
	}
	for text, want := range map[string]string{
		"90": "1m30s", "1h 30min": "1h30m0s", "1.5h": "1h30m0s", "2d4h": "52h0m0s", "1500 ms": "1.5s", "infinity": "", "0": "", "": "", "1y": "", "x": "", "1 2 x": "", "999999999999w": "",
	} {
		d, ok := span(text)
		if got := map[bool]string{true: d.String()}[ok]; got != want {
			t.Errorf("span(%q) = %q, want %q", text, got, want)
		}
	}
}

// Kubernetes takes a date that isn't quoted for a text, and no value for an empty one.
func TestWordsAndVariablesOfACronJobAreTextsAsTheyAreWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "jobs.yaml")
	text := `kind: List
base: &base
  kind: CronJob
  metadata: {name: dated}
  spec:
    schedule: 0 3 * * *
    jobTemplate: {spec: {template: {spec: {containers: [{
      command: [report, --since, 2026-01-01, 2026-01-01T10:00:00Z, 1.10, ~],
      env: [{name: START, value: 2026-01-01}, {name: EMPTY, value: }, {name: NONE}],
    }]}}}}
items: [*base]
`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := CronJobs(name)
	for _, want := range []string{
		`command: [report, --since, "2026-01-01", "2026-01-01T10:00:00Z", "1.10", ""]`, `START: "2026-01-01"`, `EMPTY: ""`, `NONE: ""`,
	} {
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("CronJobs() = %v, want %s in\n%s", err, want, got)
		}
	}
}

func TestACronJobWithAKeyTwiceIsNotPassedOver(t *testing.T) {
	name := filepath.Join(t.TempDir(), "jobs.yaml")
	text := "kind: CronJob\nmetadata: {name: a}\nmetadata: {name: b}\n---\nkind: CronJob\nmetadata: {name: c}\nspec: {schedule: 0 3 * * *}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := CronJobs(name); err == nil || !strings.Contains(err.Error(), `"metadata" already defined`) {
		t.Errorf("CronJobs() = %v, want that a key is there twice:\n%s", err, got)
	}
}
