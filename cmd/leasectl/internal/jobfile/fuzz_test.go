package jobfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// FuzzCrontab reads texts as crontabs.
func FuzzCrontab(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "# name: a\n* * * * * x", "A=b\n@daily x%y\\%z%", "-@hourly root x", "@reboot x", "'A' = \"b", "SHELL=\nHOME=\nCRON_TZ=\n1 2 3 4 5 6",
		"# slotlease: user column\n@daily root", "# slotlease: no user column\r\n@daily\troot \\", "=", "\"", "@", "- - - - - -", "@daily root x\n@daily alice y", "\xff",
	} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		wantSound(t, filepath.Join(dir, "jobs"), text, &reader{machine: debian("UTC"), crontabs: true})
	})
}

// FuzzYAML reads texts as jobs.yaml.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{
		"jobs: []", "jobs:\n- name: a\n  command: b\n", "jobs: [{name: a, command: [b, 1], env: {A: b}, labels: {c: d}, schedule: [e, f], continuous: true}]",
		"defaults: {every: 1h, env: {A: b}, onExit: keep}\njobs: [{name: a, command: b, env: {A: c}, every: }]", "jobs: &a [*a]", "a: b", "---\n---\n", "%YAML 1.2",
		"jobs: [{name: a, command: \"\\0\"}]", "jobs: [{name: !!binary aa, ? {}: b}]", "defaults:\njobs:\n", "{", "jobs: [[[[[[", "jobs: [{<<: {name: a}, command: |\n b}]",
	} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		if isYAML([]byte(text)) {
			wantSound(t, filepath.Join(dir, "jobs.yaml"), text, &reader{machine: debian("UTC")})
		}
	})
}

// wantSound checks what holds of all that is read, and of all faults.
func wantSound(t *testing.T, path, text string, r *reader) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
	jobs, _, err := r.read([]string{path})
	lines := strings.Count(text, "\n") + 1
	if err != nil {
		for _, fault := range err.(interface{ Unwrap() []error }).Unwrap() {
			if e, ok := errors.AsType[*Error](fault); !ok || e.File != path || e.Line > lines || strings.Contains(fault.Error(), "\n") {
				t.Errorf("fault %q, want its place in a text of %d lines, in one line", fault, lines)
			}
		}
		return
	}
	seen := map[string]bool{}
	for _, j := range jobs {
		if err := store.CheckWorkerType(j.Name); err != nil || seen[j.Name] || len(j.Command) == 0 || j.Command[0] == "" || j.Line < 1 || j.Line > lines {
			t.Errorf("job %+v: %v, want a name of its own, a place and a command", j, err)
		}
		seen[j.Name] = true
		for _, o := range j.Options {
			if !slices.ContainsFunc(keys, func(k key) bool { return k.flag == o.Name }) || o.Line < 1 || o.Line > lines {
				t.Errorf("option %+v, want that of a key, and a place", o)
			}
		}
		for _, text := range slices.Concat(j.Command, j.Env, []string{j.Stdin, j.User, j.Dir}) {
			if strings.Contains(text, "\x00") {
				t.Errorf("job %+v has a zero byte", j)
			}
		}
		for _, pair := range j.Env {
			if strings.Index(pair, "=") < 1 {
				t.Errorf("job %+v: %q is no variable", j, pair)
			}
		}
	}
}
