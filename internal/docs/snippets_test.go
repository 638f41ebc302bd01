package docs

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path of this module.
const module = "github.com/slotlease/slotlease"

// imports are the packages that snippets use, by name; a snippet need not name them.
var imports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "log": "log", "slog": "log/slog", "http": "net/http",
	"os": "os", "strings": "strings", "synctest": "testing/synctest", "testing": "testing", "time": "time", "sql": "database/sql",
	"pgxpool": "github.com/jackc/pgx/v5/pgxpool", "goredis": "github.com/redis/go-redis/v9", "redis": module + "/store/redis",
	"clock": "github.com/benbjohnson/clock", "zap": "go.uber.org/zap",
	"workerlease": module + "/workerlease", "history": module + "/workerlease/history", "slots": module + "/slots", "priority": module + "/priority",
	"health": module + "/workerlease/health", "promlease": module + "/workerlease/promlease",
	"otellease":  module + "/workerlease/otellease",
	"otel":       "go.opentelemetry.io/otel",
	"prometheus": "github.com/prometheus/client_golang/prometheus", "promhttp": "github.com/prometheus/client_golang/prometheus/promhttp",
	"fence": module + "/workerlease/fence", "sqlfence": module + "/workerlease/fence/sqlfence", "httpfence": module + "/workerlease/fence/httpfence",
	"store": module + "/store", "mongo": module + "/store/mongo", "cosmos": module + "/store/cosmos", "postgres": module + "/store/postgres",
	"sqlite": module + "/store/sqlite", "memory": module + "/store/memory",
	"clocks": module + "/testutil/clocks", "faultstore": module + "/testutil/faultstore",
	"sim": module + "/testutil/sim", "storetest": module + "/testutil/storetest",
}

// prelude declares what snippets take for granted.
const prelude = `package snippet

import (
	"context"
	"database/sql"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

var (
	ctx       context.Context
	client    *workerlease.Client
	ledger    store.Ledger
	options   workerlease.Options
	callbacks workerlease.Callbacks
	w         *workerlease.WorkerLease
	l         workerlease.Lease
	db        *sql.DB
	body      string
	t         *testing.T
)

func exportInvoices(ctx context.Context, token int64) error { return nil }

type handler struct{}

func newHandler(*sim.Process) handler                   { return handler{} }
func (handler) callbacks() (c workerlease.Callbacks)    { return c }
`

// Every Go block of the documentation compiles: a whole file, declarations, or
// statements, which may return an error. Tests among them pass, and the options are valid
// that the README recommends.
func TestGoBlocksCompileAndTestsPass(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the compiler")
	}
	sources := map[string]string{} // by the name of the snippet
	for _, p := range pages(t) {
		name := strings.ToLower(strings.NewReplacer("/", "_", ".md", "", "-", "_").Replace(p.path))
		for _, b := range p.blocks() {
			if b.lang == "go" {
				sources[fmt.Sprintf("%s_%d", name, b.line)] = wrap(t, p, b)
			}
		}
	}
	sources["wanted"] = wrap(t, page{path: "README.md"}, block{line: 1, text: wanted(t)})
	if len(sources) < 11 {
		t.Errorf("found %d snippets, want more", len(sources))
	}

	files := map[string]string{}
	bin := t.TempDir() + string(filepath.Separator)
	build, test := []string{"build"}, []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", bin}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		files[name+"/prelude.go"] = prelude
		if strings.Contains(sources[name], "\nfunc Test") {
			files[name+"/snippet_test.go"] = sources[name]
			test = append(test, "./internal/docs/"+name)
		} else {
			files[name+"/snippet.go"] = sources[name]
			build = append(build, "./internal/docs/"+name)
		}
	}
	for _, args := range [][]string{build, test} {
		if out, err := goWith(t, files, args...); err != nil {
			t.Errorf("go %s of the Go blocks: %v\n%s", args[0], err, out)
		}
	}
	tests, err := filepath.Glob(bin + "*.test*")
	if err != nil || len(tests) == 0 {
		t.Errorf("tests among the Go blocks: %v, %v, want some", tests, err)
	}
	for _, path := range tests {
		if out, err := exec.CommandContext(t.Context(), path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", filepath.Base(path), err, out)
		}
	}
}

// wanted is a test that the options of the table "You want" of the README are valid, and all
// that a worker needs next to a worker type.
func wanted(t *testing.T) string {
	t.Helper()
	var options []string
	for _, row := range read(t, "README.md").table(t, "| You want | Options |") {
		for i, text := range strings.Split(row[1], "`") {
			if i%2 == 1 && strings.Contains(text, ":") {
				options = append(options, fmt.Sprintf("{WorkerType: %q, %s},\n", fmt.Sprint("row-", len(options)), text))
			}
		}
	}
	if len(options) < 6 {
		t.Errorf("the table has options in %d cells, want more", len(options))
	}
	return "func TestWanted(t *testing.T) {\nfor _, o := range []workerlease.Options{\n" + strings.Join(options, "") +
		"} {\nif _, err := o.Resolved(); err != nil {\nt.Error(err)\n}\n}\n}\n"
}

// goWith runs a go command on files that are only as if they were below this folder.
func goWith(t *testing.T, files map[string]string, args ...string) (string, error) {
	t.Helper()
	here, err := filepath.Abs(".")
	must(t, err)
	temp := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range files {
		path := filepath.Join(temp, strings.ReplaceAll(name, "/", "_"))
		must(t, os.WriteFile(path, []byte(text), 0o600))
		overlay.Replace[filepath.Join(here, filepath.FromSlash(name))] = path
	}
	data, err := json.Marshal(overlay)
	must(t, err)
	path := filepath.Join(temp, "overlay.json")
	must(t, os.WriteFile(path, data, 0o600))
	cmd := exec.CommandContext(t.Context(), "go", append([]string{args[0], "-overlay", path}, args[1:]...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// declared finds what a block leaves to the reader.
var declared = regexp.MustCompile(`(?m)^(\w+), err := `)

// uses are statements that use what a block declares.
func uses(text string) (all string) {
	for _, found := range declared.FindAllStringSubmatch(text, -1) {
		all += "_, _ = " + found[1] + ", err\n"
	}
	return all
}

// wrap makes a file of a block. Errors name the lines of the page.
func wrap(t *testing.T, p page, b block) string {
	t.Helper()
	at := fmt.Sprintf("//line %s:%d\n", p.path, b.line)
	bodies := []string{b.text, "func _() error {\n" + at + b.text + uses(b.text) + "return nil\n}\n"}
	var failed error
	for _, body := range bodies {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package snippet\n"+at+body, 0)
		if err != nil {
			failed = err
			continue
		}
		var used []string
		for name, path := range imports {
			named := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(path) })
			if !named && slices.ContainsFunc(file.Unresolved, func(id *ast.Ident) bool { return id.Name == name }) {
				used = append(used, fmt.Sprintf("import %s %q\n", name, path))
			}
		}
		slices.Sort(used)
		return "package snippet\n" + strings.Join(used, "") + at + body
	}
	t.Fatalf("%s:%d: %v", p.path, b.line, failed)
	return ""
}
