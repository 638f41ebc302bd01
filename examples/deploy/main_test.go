package deploy

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// programs are built once for all tests.
var programs = struct {
	sync.Mutex
	dir   string
	built map[string]error
}{built: map[string]error{}}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "slotlease-deploy-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// program is the path of a program that is built from a package, seen from a folder.
func program(t *testing.T, name, folder, pkg string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	path := filepath.Join(programs.dir, name)
	if _, done := programs.built[name]; !done {
		build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, pkg)
		build.Dir = folder
		out, err := build.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%v: %w\n%s", build, err, out)
		}
		programs.built[name] = err
	}
	must(t, programs.built[name])
	return path
}

func leasectl(t *testing.T) string { return program(t, "leasectl", "../..", "./cmd/leasectl") }

// line is a command line of leasectl in a manifest: what follows the program, and the environment that it is given.
type line struct {
	args, env []string
	files     map[string]string // those that args name, and what stands there
	ready     func()            // waits for what follows once it is ready; may be nil
}

// here is the line as it can be run on this machine: on a SQLite ledger, on a free port of its own, on files with the same
// contents, and with a command that is here.
func (l line) here(t *testing.T, ledger string) []string {
	t.Helper()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	write(t, store, ledger)
	args := slices.Clone(l.args)
	for i, arg := range args {
		switch text, isFile := l.files[arg]; {
		case arg == "--":
			return append(args[:i+1], "true")
		case isFile:
			args[i] = filepath.Join(dir, filepath.Base(arg))
			write(t, args[i], text)
		case i == 0:
		case args[i-1] == "--store-file":
			args[i] = store
		case args[i-1] == "--token-file":
			args[i] = filepath.Join(dir, "token")
			write(t, args[i], "a token of the test")
		case args[i-1] == "--store":
			args[i] = ledger
		case args[i-1] == "--listen":
			args[i] = "127.0.0.1:0"
		}
	}
	return args
}

// ready matches what run and cron, as text or JSON, and serve say once the store has answered.
var ready = regexp.MustCompile(`ready: store time|"message":"ready"|serving http`)

// expectReady runs a line of a manifest on a ledger of its own: until it ends with code 0 if that is its purpose, or else until
// it is ready, and then to its end in order.
func expectReady(t *testing.T, l line) {
	t.Helper()
	ledger := "sqlite:" + filepath.Join(t.TempDir(), "ledger.db")
	if l.args[0] == "serve" {
		create := exec.Command(leasectl(t), "init", "--store", ledger)
		if out, err := create.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	cmd := exec.Command(leasectl(t), l.here(t, ledger)...)
	cmd.Env = append(os.Environ(), append(l.env, "LEASECTL_STORE="+ledger)...)
	out, err := cmd.StderrPipe()
	must(t, err)
	cmd.Stdout = cmd.Stderr
	must(t, cmd.Start())
	deadline := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer deadline.Stop()
	var log strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&log, lines.Text())
		if ready.MatchString(lines.Text()) && !slices.Contains(l.args, "--once") {
			if l.ready != nil {
				l.ready()
			}
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	if err := cmd.Wait(); err != nil || !ready.MatchString(log.String()) {
		t.Errorf("leasectl %s: %v, want that it gets ready, and code 0; it wrote\n%s", strings.Join(l.args, " "), err, &log)
	}
}

// files are those that a pattern names: two at least.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) < 2 {
		t.Fatalf("%s names %q, %v, want two files at least", pattern, paths, err)
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// after is the word behind an option of a line.
func after(t *testing.T, args []string, option string) string {
	t.Helper()
	i := slices.Index(args, option)
	if i < 0 || i+1 == len(args) {
		t.Fatalf("%q has no %s", args, option)
	}
	return args[i+1]
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
