package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/workerlease/verify"
)

func TestExitCodesAreThoseOfLeasectl(t *testing.T) {
	help := helpOf(t, "exit-codes")
	var want, got []string
	for _, line := range strings.Split(strings.TrimSpace(help), "\n")[1:] {
		want = append(want, strings.Join(strings.Fields(line), " "))
	}
	for _, row := range read(t, "docs/leasectl.md").table(t, "| Code | Meaning |") {
		got = append(got, row[0]+" "+row[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/leasectl.md lists the exit codes\n%s\nand leasectl\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The log lines that docs/troubleshooting.md explains are in the code, piece by piece, and so
// are leasectl's own messages in docs/metrics.md.
func TestLogLinesThatAreExplainedExist(t *testing.T) {
	code := source(t, false, "cmd/leasectl", "workerlease")
	text := read(t, "docs/troubleshooting.md").text
	lines := regexp.MustCompile("(?m)^\\| .*?`([^`]+)`.* \\| .* \\|$").FindAllStringSubmatch(text, -1)
	if len(lines) < 6 {
		t.Errorf("docs/troubleshooting.md explains %d log lines, want more", len(lines))
	}
	for _, line := range lines {
		for _, piece := range regexp.MustCompile(`…|"[^"]*"|: |\d+`).Split(line[1], -1) {
			if piece = strings.Trim(piece, " ,"); len(piece) > 4 && !strings.Contains(code, piece) {
				t.Errorf("%q is no part of the code, but of the log line %q", piece, line[1])
			}
		}
	}
	_, own, _ := strings.Cut(read(t, "docs/metrics.md").text, "next to its own: ")
	own, _, _ = strings.Cut(own, ".\n")
	quoted := strings.Split(own, "`") // every second one is
	if len(quoted) < 2*8 {
		t.Errorf("docs/metrics.md lists %q as messages of leasectl run, want more", quoted)
	}
	for i, message := range quoted {
		if i%2 == 1 && !strings.Contains(code, `"`+message+`"`) {
			t.Errorf("%q is no message of leasectl run", message)
		}
	}
}

// source is the text of all Go files below some folders: of the tests, or of all else.
func source(t *testing.T, tests bool, dirs ...string) string {
	t.Helper()
	var code strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") != tests {
				return err
			}
			source, err := os.ReadFile(path)
			code.Write(source)
			return err
		})
		must(t, err)
	}
	return code.String()
}

// helpOf is what leasectl help writes about a topic.
func helpOf(t *testing.T, topic string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds leasectl")
	}
	help, err := exec.CommandContext(t.Context(), filepath.Join(build(t), "leasectl"), "help", topic).Output()
	must(t, err)
	return string(help)
}

// Every check of leasectl doctor is explained, with the question that its help shows.
func TestChecksOfDoctorAreThoseOfTheHelp(t *testing.T) {
	_, list, _ := strings.Cut(helpOf(t, "doctor"), "The checks:\n\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var want, got []string
	for line := range strings.Lines(list) {
		want = append(want, strings.Join(strings.Fields(line), " "))
	}
	for _, row := range read(t, "docs/checks.md").table(t, "| Check | It asks | If not |") {
		got = append(got, strings.Trim(row[0], "`")+" "+row[1])
		if row[2] == "" {
			t.Errorf("docs/checks.md says nothing of what to do about %s", row[0])
		}
	}
	if len(want) < 30 || !slices.Equal(got, want) {
		t.Errorf("docs/checks.md lists the checks\n%s\nand leasectl\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Every finding of leasectl verify is explained, under its severity.
func TestFindingsOfVerifyAreListed(t *testing.T) {
	p := read(t, "docs/checks.md")
	listed := map[string]verify.Severity{}
	for header, severity := range map[string]verify.Severity{"| Fault | Meaning |": verify.Fault, "| Warning | Meaning |": verify.Warning, "| Note | Meaning |": verify.Note} {
		for _, row := range p.table(t, header) {
			listed[strings.Trim(row[0], "`")] = severity
		}
	}
	codes := regexp.MustCompile(`Code = "([a-z-]+)"`).FindAllStringSubmatch(source(t, false, "workerlease/verify"), -1)
	for _, m := range codes {
		if got, want := listed[m[1]], verify.SeverityOf(verify.Code(m[1])); got != want {
			t.Errorf("docs/checks.md lists %s as %q, want %q", m[1], got, want)
		}
	}
	if len(listed) != len(codes) || len(codes) < 40 {
		t.Errorf("docs/checks.md lists %d findings, and there are %d", len(listed), len(codes))
	}
}
