package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module has a use of each kind. What is found ends with "// real".
var module = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.26.0\n",
	"m.go":   "package m\n\nimport \"time\"\n\nfunc now() time.Time { return time.Now() }\n",
	"m_test.go": `package m

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"example.com/m/internal/suites"
)

func TestInABubble(t *testing.T) {
	t.Run("a literal", func(t *testing.T) { synctest.Test(t, func(*testing.T) { go func() { time.Sleep(1) }() }) })
	bubble(t, func() { inBubbles(3); inBoth() })
	bubble(t, passed)
	for _, c := range []struct{ run func() }{{run: func() { time.Sleep(1) }}} {
		bubble(t, c.run)
	}
	for _, run := range map[string]func(){"a": func() { time.Sleep(1) }} {
		bubble(t, run)
	}
	bubble(t, func() {
		wait := func() { <-time.After(1) }
		wait()
		var f fake
		f.Append()
	})
}

func bubble(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }

func inBubbles(n int) {
	time.Sleep(1)
	if n > 0 {
		inBubbles(n - 1)
	}
}

func passed() { time.Sleep(1) }

type fake struct{}

func (*fake) Append() time.Time { return time.Now() }

type other struct{}

func (other) Append() time.Time { return time.Now() } // real

func inBoth() { time.Sleep(1) } // real

func TestOutside(t *testing.T) {
	inBoth()
	other{}.Append()
	_, cancel := context.WithTimeout(t.Context(), 1) // real
	defer cancel()
	t.Run("here", func(*testing.T) { time.Sleep(1) }) // real
	// realtime: it is a test of the check
	time.Sleep(1)
	time.Sleep(1) // realtime: so is this
	time.Sleep(1) // real
	clock := time.Now // real
	clock()
}

func TestProved(t *testing.T) {
	suites.Prove(t, "takes long")
	time.Sleep(1)
}

func TestSometimesProved(t *testing.T) {
	if testing.Short() {
		suites.Prove(t, "takes long")
	}
	time.Sleep(1) // real
}

func BenchmarkB(*testing.B) { time.Sleep(1) }
`,
	"tool/tool.go":      "package tool\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc Wait(testing.TB) { time.Sleep(1) } // real\n",
	"other/go.mod":      "module example.com/m/other\n",
	"other/o_test.go":   "package other\n\nimport \"time\"\n\nvar began = time.Now()\n",
	"w_windows_test.go": "package m\n\nimport \"time\"\n\nvar began = time.Now()\n",
	"x_test.go":         "package m_test\n\nimport \"time\"\n\nvar began = time.Now() // real\n",
}

func TestUsesOutsideBubblesAreFound(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range module {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, name, text)
	}
	for _, c := range []struct {
		name, baseline string
		update         bool
		red            []string // files, as they are reported
		left           string
	}{
		{"as many", "m_test.go\t7\ntool/tool.go\t1\nx_test.go\t1\n", false, nil, ""},
		{"one more", "m_test.go\t6\ntool/tool.go\t1\nx_test.go\t1\n", false, wants("m_test.go"), ""},
		{"a file that is new", "m_test.go\t7\nx_test.go\t1\n", false, wants("tool/tool.go"), ""},
		{"one less", "gone_test.go\t1\nm_test.go\t8\ntool/tool.go\t1\nx_test.go\t1\n", false, []string{"gone_test.go: ", "m_test.go: "}, ""},
		{"lowered", "gone_test.go\t1\nm_test.go\t8\ntool/tool.go\t1\nx_test.go\t1\n", true, nil, "m_test.go\t7\ntool/tool.go\t1\nx_test.go\t1\n"},
		{"never raised", "m_test.go\t6\nx_test.go\t2\n", true, append(wants("m_test.go"), wants("tool/tool.go")...), "m_test.go\t6\nx_test.go\t1\n"},
	} {
		if c.left == "" {
			c.left = c.baseline
		}
		write(t, "baseline.tsv", c.baseline)
		got, err := run("baseline.tsv", c.update, []string{"."})
		if err != nil || !slices.EqualFunc(got, c.red, strings.HasPrefix) {
			t.Errorf("%s: run() = %v, says\n%s\nwant\n%s", c.name, err, strings.Join(got, "\n"), strings.Join(c.red, "\n"))
		}
		if left, _ := os.ReadFile("baseline.tsv"); string(left) != c.left {
			t.Errorf("%s: the baseline is %q, want %q", c.name, left, c.left)
		}
	}
}

// wants are the beginnings of the lines that a file has in the report.
func wants(name string) (all []string) {
	for i, line := range strings.Split(module[name], "\n") {
		if strings.HasSuffix(line, "// real") {
			all = append(all, name+":"+strconv.Itoa(i+1)+": ")
		}
	}
	return all
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
