package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What the linter bounds (see .golangci.yml), and the files of a package, which it can't.
const (
	mostLines, mostBranches, mostFiles = 60, 20, 30
)

// folder is what the files of one folder have.
type folder struct {
	files, code, comments, tests int
	long, branched               int // functions over mostLines, and over mostBranches
	exported                     int // names that users may use
}

// printCode prints a table of the source tree at a path, by folder, and the sum.
func printCode(w io.Writer, root string) error {
	folders, words := map[string]*folder{}, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		below, err := filepath.Rel(root, path)
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(path, ".md"):
			words += len(bytes.Fields(text))
		case strings.HasSuffix(path, ".go"):
			dir := filepath.ToSlash(filepath.Dir(below))
			if folders[dir] == nil {
				folders[dir] = &folder{}
			}
			return folders[dir].add(filepath.ToSlash(below), text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	sum := &folder{}
	row := func(name string, f *folder) {
		_, _ = fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %d | %d |\n", name, f.files, f.code, f.comments, f.tests, f.long, f.branched, f.exported)
	}
	_, _ = fmt.Fprintf(w, "| Folder | Files | Code | Comments | Tests | Over %d lines | Over %d branches | Exported |\n|---|---|---|---|---|---|---|---|\n", mostLines, mostBranches)
	crowded := []string{}
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		f := folders[name]
		row(name, f)
		if f.files > mostFiles {
			crowded = append(crowded, name)
		}
		sum.code, sum.comments, sum.tests, sum.files = sum.code+f.code, sum.comments+f.comments, sum.tests+f.tests, sum.files+f.files
		sum.long, sum.branched, sum.exported = sum.long+f.long, sum.branched+f.branched, sum.exported+f.exported
	}
	row("all", sum)
	_, err = fmt.Fprintf(w, "\nwords of Markdown: %d; packages of more than %d files: %s\n", words, mostFiles, strings.Join(crowded, ", "))
	return err
}

// add counts a file. All lines of a test are of tests; an empty line of another file is of its code.
func (f *folder) add(path string, text []byte) error {
	lines := bytes.Count(text, []byte("\n"))
	if strings.HasSuffix(path, "_test.go") {
		f.tests += lines
		return nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		return err
	}
	comments := commentLines(text)
	f.files, f.code, f.comments = f.files+1, f.code+lines-comments, f.comments+comments
	open := !strings.Contains(path, "internal/") && file.Name.Name != "main"
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if set.Position(d.End()).Line-set.Position(d.Pos()).Line-1 > mostLines {
				f.long++
			}
			if branches(d) > mostBranches {
				f.branched++
			}
			if open && d.Name.IsExported() {
				f.exported++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if open {
					f.exported += exportedOf(s)
				}
			}
		}
	}
	return nil
}

// commentLines counts the lines that have a comment and nothing else.
func commentLines(text []byte) int {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	coded, commented := map[int]bool{}, map[int]bool{}
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			break
		}
		lines := coded
		if kind == token.COMMENT {
			lines = commented
		}
		if kind != token.SEMICOLON || literal == ";" { // one that is written
			for n := range strings.Count(literal, "\n") + 1 {
				lines[file.Line(pos)+n] = true
			}
		}
	}
	maps.DeleteFunc(commented, func(line int, _ bool) bool { return coded[line] })
	return len(commented)
}

// branches is the cyclomatic complexity of a function.
func branches(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			n += min(len(node.List), 1)
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func exportedOf(s ast.Spec) (n int) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			n++
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				n++
			}
		}
	}
	return n
}
