package transcript

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/store"
)

func opened(t *testing.T, w Where) *Transcript {
	t.Helper()
	return New(w, func(err error) { t.Error(err) })
}

func TestTheTailIsTheEndOfEachRunByWholeLines(t *testing.T) {
	o := opened(t, Tail)
	_, _ = io.WriteString(o.Stdout(), "one\ntw")
	_, _ = io.WriteString(o.Stderr(), "\x1b[31mwarning\n")
	_, _ = io.WriteString(o.Stdout(), "o\nno end")
	if got, want := o.End(), "one\n\x1b[31mwarning\ntwo\nno end\n"; got != want {
		t.Errorf("the tail is %q, want %q", got, want)
	}
	for i := range 10_000 {
		_, _ = fmt.Fprintf(o.Stdout(), "line %d\n", i)
	}
	got := o.End()
	if len(got) > store.MaxOutput || len(got) < store.MaxOutput-20 || !strings.HasPrefix(got, cut+"line ") || !strings.HasSuffix(got, "\nline 9999\n") {
		t.Errorf("the tail has %d bytes, %.20q…, want the last 16 KiB and no line of the run before", len(got), got)
	}
	if newest := o.Newest(); newest != got {
		t.Errorf("the newest end has %d bytes, want those of the run", len(newest))
	}
	if got := o.End(); got != "" {
		t.Errorf("a run that wrote nothing has %q", got)
	}
	none := New(Journal, nil)
	if none.Stdout() != nil || none.Stderr() != nil || none.End() != "" || none.Newest() != "" {
		t.Error("the journal keeps something")
	}
}

// A flood without a line feed takes no memory, and is cut into lines.
func TestAFloodIsCutIntoLines(t *testing.T) {
	o := opened(t, Tail)
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range 64 {
		_, _ = o.Stdout().Write(chunk)
	}
	s := &o.stdout
	if n := cap(s.partial); n > 4*mostLine {
		t.Errorf("a stream keeps %d bytes, want a line", n)
	}
	if got := o.End(); len(got) > store.MaxOutput {
		t.Errorf("the tail has %d bytes", len(got))
	}
}

func TestAFileHasWholeLinesAndRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	o := opened(t, inFile+Where(path))
	var writing sync.WaitGroup
	for _, w := range []io.Writer{o.Stdout(), o.Stderr()} {
		writing.Go(func() {
			for i := range 1000 {
				_, _ = io.WriteString(w, "a line of a ")
				_, _ = fmt.Fprintf(w, "run %d\n", i)
			}
		})
	}
	writing.Wait()
	if got := o.End(); got != "" {
		t.Errorf("a file keeps %q for the ledger", got)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "a line of a run "); n != 2000 || strings.Count(string(text), "\n") != 2000 || strings.Contains(string(text), "a a") {
		t.Errorf("the file has %d lines, want 2000 whole ones", n)
	}
	line := bytes.Repeat([]byte("y"), mostLine-1)
	line = append(line, '\n')
	for range (mostKept + 3) * maxFile / len(line) {
		_, _ = o.Stdout().Write(line)
	}
	names, err := filepath.Glob(path + "*")
	if err != nil || len(names) != 1+mostKept {
		t.Errorf("files %q, %v, want the newest and %d", names, err, mostKept)
	}
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || info.Size() > maxFile || info.Size()%int64(len(line)) != 0 {
			t.Errorf("%s: %v, %v, want whole lines, and at most %d bytes", name, info.Size(), err, maxFile)
		}
	}
}

// Whoever else gives the file another name, such as logrotate or another leasectl, is followed.
func TestAFileThatWasMovedIsOpenedAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	o := opened(t, inFile+Where(path))
	_, _ = io.WriteString(o.Stdout(), "before\n")
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	o.End()
	_, _ = io.WriteString(o.Stdout(), "after\n")
	if text, err := os.ReadFile(path); err != nil || string(text) != "after\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

func TestAFileThatCannotBeWrittenStopsNothing(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]string{"/dev/full": "is not a regular file", t.TempDir(): "is not a regular file", "/nowhere/log": "no such file or directory"} {
		if err := Check(inFile + Where(path)); err == nil || err.Error() != want {
			t.Errorf("Check(%s) = %v, want %s", path, err, want)
		}
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var errs []error
	f := &file{path: "/nowhere/log", f: full, failed: func(err error) { errs = append(errs, err) }}
	for range 3 {
		f.line([]byte("x\n"))
	}
	if len(errs) != 1 || errs[0].Error() != "output is lost: no space left on device" {
		t.Errorf("reported %v, want the first error", errs)
	}
	f.ended()
	f.line([]byte("x\n"))
	if len(errs) != 2 || !strings.Contains(errs[1].Error(), "no such file") {
		t.Errorf("reported %v, want that of the next run", errs)
	}
}

// What a link points to need not exist, as in a folder that is mounted later.
func TestACheckOfALinkToNothingMakesNothing(t *testing.T) {
	dir := t.TempDir()
	link := func(name, to string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.Symlink(to, path); err != nil {
			t.Skip(err)
		}
		return path
	}
	link("deep", filepath.Join(dir, "a", "b"))
	for path, want := range map[string]string{
		link("near", "absent"):            "",
		link("far", "near"):               "",
		link("above", "deep/../absent"):   "no such file or directory",
		link("elsewhere", "/nowhere/log"): "no such file or directory",
		link("self", "self"):              "too many levels of symbolic links",
	} {
		err := Check(inFile + Where(path))
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("Check(%s) = %v, want %q", filepath.Base(path), err, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 6 {
		t.Errorf("the folder has %v, %v, want the six links alone", entries, err)
	}
}

func TestTheFormsOfOutput(t *testing.T) {
	for _, text := range []string{"journal", "tail", "file:/var/log/x"} {
		if got, err := Parse(text); err != nil || got != Where(text) {
			t.Errorf("Parse(%q) = %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "file", "file:", "tails", "/var/log/x"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %q, want an error", text, got)
		}
	}
}

// Somebody may check a file while a run begins that writes the first line of it, as at a reload, or by cron --check.
func TestACheckTakesNoLineFromARun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	stop := make(chan struct{})
	var checking sync.WaitGroup
	checking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := Check(inFile + Where(path)); err != nil {
				t.Error(err)
			}
		}
	})
	defer checking.Wait()
	defer close(stop)
	for i := range 1000 {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		o := opened(t, inFile+Where(path))
		_, _ = io.WriteString(o.Stdout(), "a line\n")
		o.End()
		if text, err := os.ReadFile(path); err != nil || string(text) != "a line\n" {
			t.Fatalf("run %d: the file has %q, %v, want its line", i, text, err)
		}
	}
}
