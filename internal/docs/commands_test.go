package docs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/internal/signals"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/internal/tmpfs"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/s3peer"
)

// Every command of the documentation is run, and writes what is shown. A block "sh"
// holds commands, a block "console" also their output, and ^C where they are
// interrupted. A block with a name after its language, such as "yaml jobs.yaml", is that
// file. The blocks of a page are one session: exports last, and so do files.
// A session that names a MongoDB server or a Cosmos DB account uses a peer instead.
func TestCommandsDoWhatIsShown(t *testing.T) {
	if testing.Short() {
		t.Skip("runs leasectl for a minute")
	}
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	suites.Prove(t, "it runs each command of the documentation")
	t.Parallel()
	bin := build(t)
	for _, p := range pages(t) {
		t.Run(p.path, func(t *testing.T) {
			t.Parallel()
			s := &session{dir: t.TempDir(), bin: bin}
			for _, b := range p.blocks() {
				if _, file, named := strings.Cut(b.lang, " "); named {
					must(t, os.WriteFile(filepath.Join(s.dir, file), []byte(b.text), 0o600))
				}
				if b.lang != "sh" && b.lang != "console" {
					continue
				}
				t.Run(fmt.Sprint("line ", b.line), func(t *testing.T) {
					for _, c := range commands(b) {
						s.do(t, c)
					}
				})
			}
		})
	}
}

// build builds leasectl once, and returns its folder.
func build(t *testing.T) string {
	t.Helper()
	dir, err := built()
	must(t, err)
	return dir
}

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "slotlease-docs-")
	if err != nil {
		return "", err
	}
	builtDir = dir
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir+string(filepath.Separator), "./cmd/leasectl")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	return dir, nil
})

// builtDir is to be removed when the tests have ended.
var builtDir string

func TestMain(m *testing.M) {
	signals.Heed()
	tmpfs.Use()
	parallel.Waiting() // for slots
	code := m.Run()
	if builtDir != "" {
		_ = os.RemoveAll(builtDir)
	}
	os.Exit(code)
}

// command is a command of a page, and the lines that are shown as its output.
type command struct {
	text  string
	shown []string
}

// commands are those of a block. Comments and empty lines are none.
func commands(b block) (all []command) {
	text := strings.ReplaceAll(b.text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		prompted, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case b.lang == "console" && isCommand:
			all = append(all, command{text: prompted})
		case b.lang == "console" && len(all) > 0:
			last := &all[len(all)-1]
			last.shown = append(last.shown, line)
		case b.lang == "sh" && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#"):
			all = append(all, command{text: line})
		}
	}
	return all
}

// session is a shell in an empty folder, with leasectl in its PATH.
type session struct {
	dir, bin string
	exports  []string
}

// do runs a command.
func (s *session) do(t *testing.T, c command) {
	t.Helper()
	text := strings.TrimSpace(regexp.MustCompile(`\s# .*$`).ReplaceAllString(c.text, ""))
	first, rest, _ := strings.Cut(text, " ")
	switch {
	case first == "export":
		s.exports = append(s.exports, "export "+peers(t, rest))
	case first == "make":
		if !strings.Contains(read(t, "Makefile").text, "\n"+strings.Fields(rest)[0]+":") {
			t.Errorf("%s: the Makefile has no such target", text)
		}
	case strings.HasPrefix(text, "go get "), strings.HasPrefix(text, "go install "):
		words := strings.Fields(text)
		expectPackage(t, words[len(words)-1]) // after its options
	case strings.HasPrefix(text, "go test "), strings.HasPrefix(text, "SLOTLEASE_") && strings.Contains(text, " go test "):
		expectTests(t, text)
	case strings.HasPrefix(text, "go run ./cmd/leasectl demo"), strings.HasPrefix(text, "leasectl demo"):
		// Sooner than with slots of 3 s, its default.
		s.run(t, "leasectl demo --slots 6 --interval 2s", c.shown)
	case strings.Contains(text, "leasectl "):
		s.run(t, text, c.shown)
	default:
		t.Errorf("%s: don't know how to test that", text)
	}
}

// peers puts test peers in place of the servers that an export names.
func peers(t *testing.T, assignment string) string {
	t.Helper()
	name, value, _ := strings.Cut(assignment, "=")
	path := func(after string) string {
		_, path, _ := strings.Cut(strings.SplitN(strings.Trim(value, `'"`), "://", 2)[1], "/")
		path, query, _ := strings.Cut(path, "?")
		return fmt.Sprintf("%s-%d%s?%s", path, time.Now().UnixNano(), after, query)
	}
	switch {
	case strings.Contains(value, "mongodb://"):
		before, after, _ := strings.Cut(mongopeer.URI(t), "/?")
		return fmt.Sprintf("%s='%s/%s&%s'", name, strings.TrimSuffix(before, "/"), path(""), after)
	case strings.Contains(value, "cosmos://"):
		if os.Getenv("COSMOS_URI") != "" {
			t.Skip("COSMOS_URI is set: containers in a real account would have to be paid for")
		}
		before, after, _ := strings.Cut(cosmospeer.URI(t), "/?")
		return fmt.Sprintf("%s='%s/%s&%s'", name, before, path(""), after)
	case strings.Contains(value, "postgres://"):
		return name + "='" + postgrespeer.Database(t) + "'"
	case strings.Contains(value, "mysql://"):
		place := strings.NewReplacer("@tcp(", "@", ")/", "/").Replace(mysqlpeer.Database(t)) // USER@tcp(HOST:PORT)/NAME
		return name + "='mysql://" + place + "'"
	case strings.Contains(value, "redis://"):
		return fmt.Sprintf("%s='%s?unsafeNoPersistence=true&prefix=docs%d'", name, redispeer.Shared(t), time.Now().UnixNano())
	case strings.Contains(value, "s3://"):
		return fmt.Sprintf("%s='s3://docs-%d/leases?pathStyle=true&endpoint=%s' AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s",
			name, time.Now().UnixNano(), url.QueryEscape(s3peer.Shared(t)), s3peer.ID, s3peer.Secret)
	case strings.Contains(value, "azblob://"):
		return fmt.Sprintf("%s='azblob://%s/docs-%d/leases?endpoint=%s' AZURE_STORAGE_KEY='%s'",
			name, azuritepeer.Account, time.Now().UnixNano(), url.QueryEscape(azuritepeer.Shared(t)+"/"+azuritepeer.Account), azuritepeer.Key)
	case name == "COSMOS_KEY":
		return name + "=" + cosmospeer.Key()
	}
	return assignment
}

// expectPackage checks a package that users are to get or install, by its path or in a clone.
func expectPackage(t *testing.T, path string) {
	t.Helper()
	path, _, _ = strings.Cut(path, "@")
	if inClone, ok := strings.CutPrefix(path, "./"); ok {
		path = module + "/" + inClone
	}
	below, ours := strings.CutPrefix(path, module)
	if _, err := os.Stat(filepath.Join(root, below)); !ours || err != nil {
		t.Errorf("%s is no package of this module", path)
	}
}

// expectTests checks that a go test command names folders that exist.
func expectTests(t *testing.T, text string) {
	t.Helper()
	for _, word := range strings.Fields(text) {
		if path := strings.TrimSuffix(word, "..."); strings.HasPrefix(word, "./") {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: there is no %s", text, path)
			}
		}
	}
}

// tooBusy matches what a demo writes whose workers were too late, or so late that another went first.
var tooBusy = regexp.MustCompile(`was too late|missed +[1-9]|max ([2-9]\d\d ms|[\d.]+ s) between`)

// run runs a command of leasectl. A demo that shows that its workers were too late is run
// again: the machine is busy.
func (s *session) run(t *testing.T, text string, shown []string) {
	t.Helper()
	for tries := 1; ; tries++ {
		wrong := s.try(t, text, shown)
		switch {
		case wrong == "":
			return
		case tries == 3 || !tooBusy.MatchString(wrong):
			t.Error(wrong)
			return
		}
	}
}

// try runs a command, and returns what is wrong. One that goes on for ever is interrupted
// at the line ^C, or else when it has written all that is shown; or, if nothing is, when it
// is ready.
func (s *session) try(t *testing.T, text string, shown []string) (wrong string) {
	t.Helper()
	for _, script := range regexp.MustCompile(`\./\w+\.sh`).FindAllString(text, -1) {
		must(t, os.WriteFile(filepath.Join(s.dir, script), []byte("#!/bin/sh\n"), 0o700))
	}
	forever := regexp.MustCompile(`leasectl (run|cron [^-])|--watch`).MatchString(text) && !strings.Contains(text, " --once ")
	if forever && len(shown) == 0 {
		shown = []string{"… ready: …"}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	script := strings.Join(s.exports, "\n") + "\n"
	if !strings.ContainsAny(text, "|;&") {
		script += "exec " // so that the signal gets there
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", script+text)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+s.bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		_ = in.Close()
		ended <- err
	}()
	interrupt := sync.OnceFunc(func() { _ = cmd.Process.Signal(syscall.SIGINT) })
	var all strings.Builder
	var want *regexp.Regexp
	next := func() {
		want = nil
		for len(shown) > 0 && want == nil {
			if shown[0] == "^C" {
				interrupt()
			} else {
				want = shape(shown[0])
			}
			shown = shown[1:]
		}
		if want == nil && forever {
			interrupt()
		}
	}
	next()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if want != nil && want.MatchString(strings.TrimSpace(lines.Text())) {
			next()
		}
	}
	if err := <-ended; err != nil {
		return fmt.Sprintf("%s ended with %v, want exit code 0; it wrote\n%s", text, err, all.String())
	} else if want != nil {
		return fmt.Sprintf("%s: no line matches %q where it is shown; it wrote\n%s", text, want, all.String())
	}
	return ""
}

// shape matches the lines that differ from this one in numbers, times, white space and
// what stands for "…". It is nil for a line that is nothing else, or empty.
func shape(line string) *regexp.Regexp {
	line = strings.TrimSpace(line)
	if line == "" || line == "…" {
		return nil
	}
	line = regexp.QuoteMeta(line)
	for _, r := range [][2]string{
		{`\d+(\\\.\d+)? ?(ns|µs|ms|s|m|h)\b`, "\x00"}, // a duration, in any unit
		{`\d+`, `\d+`},
		{`\s+`, `\s+`},
		{`…`, `.*`},
		{"\x00", `[\d.]+ ?(ns|µs|ms|s|m|h)`},
	} {
		line = regexp.MustCompile(r[0]).ReplaceAllLiteralString(line, r[1])
	}
	return regexp.MustCompile(`^` + line + `$`)
}
