package jobfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// debian is a machine whose users are root and alice.
func debian(zone string) machine {
	return machine{
		isUser: func(name string) bool { return name == "root" || name == "alice" },
		zone: func() (string, error) {
			if zone == "" {
				return "", errors.New("no zone")
			}
			return zone, nil
		},
	}
}

// readText reads a file with a text, on a machine in UTC. What it returns names the file without its directory.
func readText(t *testing.T, name, text string) ([]Job, []Note, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), 0o600))
	return (&reader{machine: debian("UTC")}).read([]string{name})
}

// shown is a job in a few lines.
func shown(j Job) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %s", j.Place, j.Name)
	for _, o := range j.Options {
		fmt.Fprintf(&b, " --%s=%s", o.Name, o.Value)
	}
	fmt.Fprintf(&b, " %q", j.Command)
	for _, extra := range []struct{ name, value string }{{"stdin", j.Stdin}, {"user", j.User}, {"dir", j.Dir}, {"env", strings.Join(j.Env, ",")}} {
		if extra.value != "" {
			fmt.Fprintf(&b, " %s=%q", extra.name, extra.value)
		}
	}
	return b.String()
}

// wantJobs compares jobs as they are shown.
func wantJobs(t *testing.T, name, text string, want ...string) {
	t.Helper()
	jobs, _, err := readText(t, name, text)
	must(t, err)
	var got []string
	for _, j := range jobs {
		got = append(got, shown(j))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("jobs of\n%s\n(-want +got):\n%s", text, d)
	}
}

// wantFaults compares the lines of an error.
func wantFaults(t *testing.T, name, text string, want ...string) {
	t.Helper()
	jobs, _, err := readText(t, name, text)
	if err == nil {
		t.Fatalf("no fault in\n%s\nbut %d jobs", text, len(jobs))
	}
	if d := cmp.Diff(want, strings.Split(err.Error(), "\n")); d != "" {
		t.Errorf("faults of\n%s\n(-want +got):\n%s", text, d)
	}
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheFormOfAFileIsSeenInItsFirstWord(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "\n# jobs:\n": false, "* * * * * a: b": false, "A=b": false, "@daily a": false,
		"jobs: []": true, "# a comment\n\ndefaults:\n": true, "---\njobs: []": true, "%YAML 1.2": true, "{jobs: []}": true, "job: x": true,
	} {
		if got := isYAML([]byte(text)); got != want {
			t.Errorf("isYAML(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestAFileThatCantBeReadIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	big := strings.Repeat("# \n", maxSize/3+1)
	for name, text := range map[string]string{"big": big, "binary": "\x00"} {
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	must(t, os.Mkdir("folder", 0o755))
	_, _, err := Read("none", "big", "folder", "binary")
	want := []string{
		"none: no such file or directory",
		"big: has more than 1 MiB: split it into several files",
		"folder: is a directory",
		"binary: has a zero byte: it is no text",
	}
	if got := strings.Split(fmt.Sprint(err), "\n"); !slices.Equal(got, want) {
		t.Errorf("Read = %q, want %q", got, want)
	}
}

func TestNoTwoJobsHaveOneName(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"a":      "# name: x\n@daily a\n@daily b\n\n@daily b\n",
		"b.yaml": "jobs:\n- {name: x, command: a}\n- {name: y, command: a}\n- {name: y, command: b}\n",
	} {
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	_, _, err := (&reader{machine: debian("UTC")}).read([]string{"a", "b.yaml"})
	want := []string{
		`a:5:1: the job at a:3:1 is named "cron-700b7373df", too: write a comment "# name: …" with another name directly above this line`,
		`b.yaml:2:10: the job at a:2:1 is named "x", too: give one of them another name`,
		`b.yaml:4:10: the job at b.yaml:3:3 is named "y", too: give one of them another name`,
	}
	if d := cmp.Diff(want, strings.Split(fmt.Sprint(err), "\n")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
