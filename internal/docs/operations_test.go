package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/slotlease/slotlease/workerlease"
)

func TestExitCodesAreThoseOfLeasectl(t *testing.T) {
	if testing.Short() {
		t.Skip("builds leasectl")
	}
	help, err := exec.CommandContext(t.Context(), filepath.Join(build(t), "leasectl"), "help", "exit-codes").Output()
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, line := range strings.Split(strings.TrimSpace(string(help)), "\n")[1:] {
		want = append(want, strings.Join(strings.Fields(line), " "))
	}
	for _, row := range read(t, "docs/operations.md").table(t, "| Code | Meaning |") {
		got = append(got, row[0]+" "+row[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/operations.md lists the exit codes\n%s\nand leasectl\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// events are values of all types of events.
var events = []workerlease.Event{
	workerlease.Allocated{},
	workerlease.Extended{},
	workerlease.Expired{},
	workerlease.Released{},
	workerlease.Claimed{},
	workerlease.Lost{},
	workerlease.Missed{},
	workerlease.HolderChanged{},
	workerlease.SlotDone{},
	workerlease.TaskFailed{},
	workerlease.Exhausted{},
	workerlease.Overrun{},
	workerlease.Panic{},
	workerlease.StopFailed{},
	workerlease.StoreFailed{},
	workerlease.Throttled{},
	workerlease.Unknown{},
	workerlease.Conflict{},
	workerlease.Vanished{},
	workerlease.Poison{},
	workerlease.PoisonReset{},
	workerlease.ScheduleMismatch{},
	workerlease.ClockSample{},
	workerlease.ClockJump{},
	workerlease.TooUncertain{},
	workerlease.Charged{},
	workerlease.Trimmed{},
}

// docs/operations.md lists each event, with the message and the level it is logged with.
func TestEventsAreListedAsTheyAreLogged(t *testing.T) {
	listed := map[string][]string{}
	for _, row := range read(t, "docs/operations.md").table(t, "| Event | Message | Level | Meaning |") {
		listed[strings.Trim(row[0], "`")] = row
	}
	var known []string
	for _, e := range events {
		name := reflect.TypeOf(e).Name()
		known = append(known, name)
		row := listed[name]
		if row == nil {
			t.Errorf("docs/operations.md doesn't list %s", name)
			continue
		}
		core, zapped := observer.New(zap.DebugLevel)
		workerlease.LogTo(zap.New(core)).Observe(e)
		var slogged bytes.Buffer
		workerlease.LogToSlog(slog.New(slog.NewTextHandler(&slogged, &slog.HandlerOptions{Level: slog.LevelDebug}))).Observe(e)
		if zapped.Len() != 1 || strings.Count(slogged.String(), "\n") != 1 {
			t.Errorf("%s is logged in %d lines by zap, and by slog as %q, want one line each", name, zapped.Len(), slogged.String())
			continue
		}
		if entry := zapped.All()[0]; row[1] != entry.Message || row[2] != entry.Level.String() {
			t.Errorf("%s is logged as %q at level %v, and listed as %q at level %s", name, entry.Message, entry.Level, row[1], row[2])
		}
		if want := fmt.Sprintf("level=%s msg=%q", strings.ToUpper(row[2]), row[1]); !strings.Contains(slogged.String(), want) {
			t.Errorf("slog gets %q of %s, want %q in it, as listed", slogged.String(), name, want)
		}
	}
	if len(listed) != len(known) {
		t.Errorf("docs/operations.md lists %d events, want the %d that there are", len(listed), len(known))
	}
	if declared := declaredEvents(t); !slices.Equal(slices.Sorted(slices.Values(known)), declared) {
		t.Errorf("the events are %v, want all that package workerlease declares: %v", known, declared)
	}
}

// declaredEvents are the names of the structs of package workerlease that embed a Worker.
func declaredEvents(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(root + "/workerlease/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok && len(s.Fields.List) > 0 && len(s.Fields.List[0].Names) == 0 {
				if id, ok := s.Fields.List[0].Type.(*ast.Ident); ok && id.Name == "Worker" {
					names = append(names, spec.Name.Name)
				}
			}
			return true
		})
	}
	slices.Sort(names)
	return names
}

// The log lines that docs/operations.md explains are in the code, piece by piece, and so
// are leasectl's own messages.
func TestLogLinesThatAreExplainedExist(t *testing.T) {
	code := source(t, "cmd/leasectl", "workerlease")
	page := read(t, "docs/operations.md").text
	_, text, _ := strings.Cut(page, "### Why doesn't my worker have it?")
	text, _, _ = strings.Cut(text, "\n## ")
	lines := regexp.MustCompile("(?m)^\\| .*?`([^`]+)`.* \\| .* \\|$").FindAllStringSubmatch(text, -1)
	if len(lines) < 6 {
		t.Errorf("docs/operations.md explains %d log lines, want more", len(lines))
	}
	for _, line := range lines {
		for _, piece := range regexp.MustCompile(`…|"[^"]*"|: |\d+`).Split(line[1], -1) {
			if piece = strings.Trim(piece, " ,"); len(piece) > 4 && !strings.Contains(code, piece) {
				t.Errorf("%q is no part of the code, but of the log line %q", piece, line[1])
			}
		}
	}
	_, own, _ := strings.Cut(page, "next to its own: ")
	own, _, _ = strings.Cut(own, ".\n")
	quoted := strings.Split(own, "`") // every second one is
	if len(quoted) < 2*8 {
		t.Errorf("docs/operations.md lists %q as messages of leasectl run, want more", quoted)
	}
	for i, message := range quoted {
		if i%2 == 1 && !strings.Contains(code, `"`+message+`"`) {
			t.Errorf("%q is no message of leasectl run", message)
		}
	}
}

// source is the text of all Go files below some folders, without tests.
func source(t *testing.T, dirs ...string) string {
	t.Helper()
	var code strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			code.Write(source)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return code.String()
}
