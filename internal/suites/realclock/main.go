// Command realclock finds where tests reach the real clock outside a bubble of testing/synctest: a busy machine makes a wait
// too short and a limit too tight. It reads what is built for Linux.
//
// What runs by make prove alone isn't counted, nor is a benchmark, nor a line that says why, at its end or on the line above:
//
//	// realtime: a certificate has a date
//
// All else is counted by file, in baseline.tsv, which may only shrink: -update lowers it.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const advice = "judge it in a bubble or by facts, wait until the test's own deadline, or say why on the line: // realtime: why"

// modules are those whose tests the gate runs.
var modules = []string{".", "store/etcd", "store/kubernetes", "store/nats"}

func main() {
	update := flag.Bool("update", false, "lower the baseline to what is found")
	flag.Parse()
	red, err := run("internal/suites/realclock/baseline.tsv", *update, modules)
	if err != nil {
		red = append(red, "realclock: "+err.Error())
	}
	for _, each := range red {
		fmt.Fprintln(os.Stderr, each)
	}
	if len(red) > 0 {
		os.Exit(1)
	}
}

// run compares what modules have with the baseline, and returns what disagrees.
func run(baseline string, update bool, modules []string) (red []string, err error) {
	found := map[string][]string{}
	for _, root := range modules {
		if err := find(found, root); err != nil {
			return nil, err
		}
	}
	old, err := os.ReadFile(baseline)
	if err != nil {
		return nil, err
	}
	allowed := map[string]int{}
	for line := range strings.Lines(string(old)) {
		file, n, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if allowed[file], err = strconv.Atoi(n); err != nil {
			return nil, fmt.Errorf("%s: %w", baseline, err)
		}
	}
	left := ""
	for _, file := range slices.Sorted(maps.Keys(allowed)) {
		n := min(allowed[file], len(found[file]))
		if n < allowed[file] && !update {
			red = append(red, fmt.Sprintf("%s: %d uses of the real clock of %d are left: lower its line by go run ./internal/suites/realclock -update", file, n, allowed[file]))
		}
		if n > 0 {
			left += fmt.Sprintf("%s\t%d\n", file, n)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(found)) {
		for _, use := range found[file] {
			if len(found[file]) > allowed[file] {
				red = append(red, fmt.Sprintf("%s outside a bubble: %s (%d here, %d in the baseline)", use, advice, len(found[file]), allowed[file]))
			}
		}
	}
	if update {
		return red, os.WriteFile(baseline, []byte(left), 0o644)
	}
	return red, nil
}

// find adds the uses of the clock in a module, by file: its position and the name of the function.
func find(found map[string][]string, root string) error {
	system := build.Default
	system.GOOS, system.GOARCH = "linux", "amd64"
	return filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if dir != root {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
		}
		p, err := system.ImportDir(dir, 0)
		if _, none := errors.AsType[*build.NoGoError](err); none {
			return nil
		} else if err != nil {
			return err
		}
		tool := slices.Contains(p.Imports, "testing") || slices.Contains(strings.Split(filepath.ToSlash(dir), "/"), "testutil")
		if tool || len(p.TestGoFiles) > 0 {
			if err := read(found, dir, slices.Concat(p.GoFiles, p.TestGoFiles), tool); err != nil {
				return err
			}
		}
		return read(found, dir, p.XTestGoFiles, tool)
	})
}

var reason, above = regexp.MustCompile(`// realtime: \S`), regexp.MustCompile(`^\s*// realtime: \S`)

// read adds those in a package: in its tests or, if it is a tool of tests, in all its files.
func read(found map[string][]string, dir string, names []string, tool bool) error {
	positions, info := token.NewFileSet(), &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	var files []*ast.File
	lines := map[string][]string{}
	for _, name := range names {
		name = filepath.Join(dir, name)
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(positions, name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files, lines[name] = append(files, f), strings.Split("\n"+string(source), "\n")
	}
	// Other packages aren't read, so what is theirs is an error, and known by where it is imported from.
	_, _ = (&types.Config{Importer: unread{}, Error: func(error) {}}).Check(dir, positions, files, info)
	g := newGraph(info, files)
	for _, n := range slices.SortedFunc(maps.Keys(g.uses), func(a, b *ast.SelectorExpr) int { return cmp.Compare(a.Pos(), b.Pos()) }) {
		at := positions.Position(n.Pos())
		file, line := filepath.ToSlash(at.Filename), lines[at.Filename][at.Line]
		says := reason.MatchString(line) || above.MatchString(lines[at.Filename][at.Line-1])
		if !says && !g.safe(g.uses[n]) && (tool || strings.HasSuffix(file, "_test.go")) {
			path, name := g.imported(n)
			found[file] = append(found[file], fmt.Sprintf("%s:%d: %s.%s", file, at.Line, path, name))
		}
	}
	return nil
}

// unread are packages of which nothing but the path is known.
type unread struct{}

func (unread) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}
