package sqldb_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// statement is what makes a text a statement, or a part of one: our statements have their keywords in capitals. prose
// is what a remedy has that names statements.
var (
	statement = regexp.MustCompile(`\b(SELECT|INSERT|DELETE|UPDATE|CREATE|MERGE|DECLARE|CASE|GRANT|SET|ALTER|DROP|WITH|FROM|WHERE|VALUES|AS|JOIN|AND|ORDER|GROUP|LOCK|TRUNCATE|PRAGMA|DUPLICATE|RETURNING|TABLE)\b`)
	prose     = regexp.MustCompile(`…|, (and|or|too|then|with|unless|while)\b`)
	// noNames are comments, texts, quoted names, variables, arguments and values.
	noNames = regexp.MustCompile("(?s)--[^\n]*|'[^']*'|\"[^\"]*\"|`[^`]*`|\\[[^\\]]*\\]|@+\\w+|%\\w|%\\[\\d\\]\\w|\\b(true|false)\\b|= on\\b")
	named   = regexp.MustCompile(`\b[A-Za-z_]\w*`)
	// aliases may be written in capitals, too, but for the types of CAST; and small are statements that this test doesn't know.
	aliases = regexp.MustCompile(`\bAS ([A-Z_]+)\b`)
	types   = []string{"BINARY", "CHAR", "UNSIGNED", "SIGNED"}
	small   = regexp.MustCompile(`^\s*(select .* (from|as)|insert into|update .* set|delete from|create (table|index)|merge into) `)
)

// In each store that speaks SQL, no table, column or alias is a word that is reserved in its dialect: the server takes
// such a statement for a mistake. A server isn't needed for that, so a store that none is at hand for is read, too. Names, and
// they alone, have small letters in our statements.
func TestNoNameInAStatementIsReserved(t *testing.T) {
	t.Parallel()
	reserved := reservedWords(t)
	for dialect, words := range reserved {
		found, read := 0, 0
		for at, text := range statements(t, filepath.Join("..", "..", dialect)) {
			if read++; small.MatchString(text) {
				t.Errorf("%s: keywords are in capitals, so that names show: %s", at, text)
			}
			for _, name := range names(text) {
				found++
				if slices.Contains(words, name) {
					t.Errorf("%s: %s is a reserved word of the dialect: %s", at, name, strings.Join(strings.Fields(text), " "))
				}
			}
		}
		if read < 20 || found < 60 {
			t.Errorf("%s: %d statements with %d names, want all of them", dialect, read, found)
		}
	}
	for text, want := range map[string]bool{
		"SELECT 1 AS clustered": true, "SELECT 1 AS is_clustered": false, "SELECT 1 AS [clustered], 'as'": false, "SELECT a.Open FROM sys.tables AS a": true,
		"SELECT 1 AS OPEN": true, "CAST(? AS BINARY)": false,
	} {
		if is := slices.ContainsFunc(names(text), func(name string) bool { return slices.Contains(reserved["sqlserver"], name) }); is != want {
			t.Errorf("%q has a reserved word for a name: %v, want %v", text, is, want)
		}
	}
}

// reservedWords are those of each dialect.
func reservedWords(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile("testdata/reserved.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for section := range strings.SplitSeq(string(data), "\n\n[") {
		if dialect, rest, ok := strings.Cut(section, "] "); ok {
			_, words, _ := strings.Cut(rest, "\n")
			all[dialect] = strings.Fields(words)
		}
	}
	if len(all) != 4 {
		t.Fatalf("reserved words of %d dialects, want 4", len(all))
	}
	return all
}

// statements are the texts in a folder's code that are statements, or parts of them, by their places. What isn't
// written there as a text is left out.
func statements(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			e, is := n.(ast.Expr)
			if !is {
				return true
			}
			text, is := literal(e)
			if is && (statement.MatchString(text) || small.MatchString(text)) && !prose.MatchString(text) {
				found[set.Position(e.Pos()).String()] = text
			}
			return !is
		})
	}
	return found
}

// literal is a text, with a gap for each part that isn't written as one; is is false if none is.
func literal(e ast.Expr) (text string, is bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		before, is := literal(e.X)
		after, too := literal(e.Y)
		return before + after, e.Op == token.ADD && (is || too)
	}
	return " ", false
}

// names are the words of a statement that have small letters.
func names(text string) (all []string) {
	for _, word := range named.FindAllString(noNames.ReplaceAllString(text, " "), -1) {
		if word != strings.ToUpper(word) {
			all = append(all, strings.ToLower(word))
		}
	}
	for _, alias := range aliases.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(types, alias[1]) {
			all = append(all, strings.ToLower(alias[1]))
		}
	}
	return all
}
