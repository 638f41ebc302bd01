package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/store/sqlite"
)

// A script in testdata/script is commands and what they write, one after the other in an empty directory:
//
//	# what it is about
//	env NAME=VALUE            in the environment of the next command
//	write FILE TEXT           writes a file
//	mkdir DIR                 makes a directory
//	link NAME TARGET          makes a symbolic link
//	ledger FILE               makes a SQLite ledger
//	read FILE                 demands that a file is as it was written
//	empty                     demands that nothing is in the directory
//	$ status --store x        runs leasectl: then come its exit code, if that isn't 0, and the lines that it wrote to the
//	                          standard output (each after "> ") and to the standard error (after "! ")
//
// A word may be quoted as in Go. $DIR stands for the directory, and $FORMS for the forms of all stores. -update writes what
// the commands write.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatal(err, "there are no scripts")
	}
	for _, path := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			must(t, err)
			home, err := os.Getwd()
			must(t, err)
			t.Chdir(t.TempDir())
			got := played(t, string(text))
			t.Chdir(home)
			golden.Compare(t, strings.TrimPrefix(path, "testdata/"), got)
		})
	}
}

// played is a script with what its commands write now.
func played(t *testing.T, script string) string {
	t.Helper()
	dir, err := os.Getwd()
	must(t, err)
	var b strings.Builder
	var env []string
	written := map[string]string{}
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		words := wordsOf(t, strings.ReplaceAll(line, "$DIR", dir))
		if len(words) == 0 {
			continue
		}
		var did error
		switch words[0] {
		case "#":
			fmt.Fprintf(&b, "\n%s\n", line)
			continue
		case "env":
			env = append(env, words[1])
		case "write":
			did = os.WriteFile(words[1], []byte(words[2]), 0o600)
			written[words[1]] = words[2]
		case "read":
			is, err := os.ReadFile(words[1])
			if string(is) != written[words[1]] {
				t.Errorf("%s is now %q", words[1], is)
			}
			did = err
		case "mkdir":
			did = os.Mkdir(words[1], 0o700)
		case "link":
			did = os.Symlink(words[2], words[1])
		case "ledger":
			did = newLedgerAt(t, words[1])
		case "empty":
			left, err := os.ReadDir(".")
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			did = err
		case "$":
			got := leasectl(t, env, words[1:]...)
			env = nil
			fmt.Fprintf(&b, "%s\n%s", line, strings.NewReplacer(dir, "$DIR", storeuri.Forms(), "$FORMS").Replace(got.lines()))
			continue
		default:
			continue // what a command wrote before
		}
		if did != nil {
			t.Fatalf("%s: %v", line, did)
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// wordsOf are the words of a line, quoted or not.
func wordsOf(t *testing.T, line string) (words []string) {
	t.Helper()
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		word, rest, _ := strings.Cut(line, " ")
		if quoted, err := strconv.QuotedPrefix(line); err == nil {
			rest = line[len(quoted):]
			if word, err = strconv.Unquote(quoted); err != nil {
				t.Fatal(err)
			}
		}
		words, line = append(words, word), rest
		if words[0] == "#" {
			break
		}
	}
	return words
}

// lines are what leasectl did, as in a script.
func (o output) lines() string {
	var b strings.Builder
	if o.code != 0 {
		fmt.Fprintf(&b, "exit %d\n", o.code)
	}
	for line := range strings.Lines(o.stdout) {
		b.WriteString("> " + line)
	}
	for line := range strings.Lines(o.stderr) {
		b.WriteString("! " + line)
	}
	return b.String()
}

func newLedgerAt(t *testing.T, path string) error {
	t.Helper()
	l, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		return err
	}
	if err := l.Init(t.Context()); err != nil {
		return err
	}
	return l.Close(t.Context())
}
