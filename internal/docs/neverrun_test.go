package docs

import (
	"cmp"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the list of docs/proofs.md of what is never run")

// claim is what this project says that it works with, though nothing here ever runs it: what is run in its place, the job of a
// workflow that runs it elsewhere, and the pages where users meet it first, with what these say.
type claim struct {
	what, nearest, job string
	said               map[string]string
}

// claims are by what stands for them in this repository: see unrun.
var claims = map[string]claim{
	"store sqlserver": {
		"SQL Server, Azure SQL Database", "errors and facts as Microsoft documents them; each name in a statement against the reserved words; once, by hand, Babelfish", "sql-server",
		map[string]string{"docs/stores.md": "SQL Server 2016 or later, and Azure SQL Database: untested", "docs/stores/sqlserver.md": "**Untested**", "docs/stores/pools.md": "SQL Server (untested)", "docs/install.md": "every store but SQL Server"},
	},
	"store mysql": {
		"MySQL 8", "MariaDB 10.11", "named",
		map[string]string{"README.md": "stand-ins for MongoDB, MySQL 8", "docs/stores.md": "MySQL 8 is untested", "docs/stores/mysql.md": "not on MySQL 8"},
	},
	"store mongo": {
		"MongoDB's own servers", "FerretDB, and answers recorded of MongoDB; by hand, `make mongodb`", "mongodb",
		map[string]string{"README.md": "stand-ins for MongoDB, MySQL 8", "docs/stores/mongodb.md": "Tested on a stand-in"},
	},
	"store cosmos": {
		"Azure Cosmos DB, and Microsoft's emulator", "@vercel/cosmosdb-server; a fake, for regions, throttling and the account", "cosmos-emulator",
		map[string]string{"README.md": "MySQL 8, Cosmos DB", "docs/stores/cosmos.md": "never on a real account"},
	},
	"store s3": {
		"Amazon S3", "Versity's gateway", "named",
		map[string]string{"README.md": "S3 and Azure Blob Storage", "docs/stores/buckets.md": "Tested on stand-ins"},
	},
	"store azblob": {
		"Azure Blob Storage", "Azurite, which is Microsoft's", "named",
		map[string]string{"README.md": "S3 and Azure Blob Storage", "docs/stores/buckets.md": "Tested on stand-ins"},
	},
	"system darwin":        {"macOS", "types, by `make portable`", "quick", map[string]string{"README.md": "macOS and Windows are untested", "docs/install.md": "untested"}},
	"system windows":       {"Windows", "types, by `make portable`", "quick", map[string]string{"README.md": "macOS and Windows are untested", "docs/install.md": "untested"}},
	"system linux_arm64":   {"Linux on ARM", "amd64; types for 32 bits", "quick", map[string]string{"docs/install.md": "untested"}},
	"workflows":            {"The workflows of GitHub's, and so all that they are to run", "actionlint; each URI in them", "", map[string]string{"docs/upgrading.md": "have not run yet"}},
	"parameters sqlserver": {"The parameters of SQL Server's URI", "they are parsed", "sql-server", map[string]string{"docs/stores/sqlserver.md": "**Untested**"}},
	"tls sqlserver":        {"TLS to SQL Server", "the driver's own tests", "sql-server", map[string]string{"docs/stores/sqlserver.md": "**Untested**"}},
}

// served are the stores whose own servers make prove starts, by what REQUIRE_STORES calls these; Kubernetes' is built by make
// kubernetes, and the last two need none.
var served = map[string]string{"postgres": "postgres", "redis": "redis", "etcd": "etcd", "nats": "nats", "kubernetes": "", "sqlite": "", "memory": ""}

// What this project says that it works with, and nothing here runs, is in a list, which this test finds; what is in it says so
// where users meet it first.
func TestWhatIsNeverRunSaysSo(t *testing.T) {
	found := unrun(t)
	for what, how := range found {
		if _, said := claims[what]; !said {
			t.Errorf("nothing here runs %s (%s): run it, or say so in claims, and where users meet it", what, how)
		}
	}
	jobs := read(t, ".github/workflows/ci.yml").text
	var rows []string
	for _, what := range slices.Sorted(maps.Keys(claims)) {
		c := claims[what]
		if _, is := found[what]; !is {
			t.Errorf("%s is in claims, and runs: take it out", what)
		}
		for path, says := range c.said {
			if !strings.Contains(strings.Join(strings.Fields(read(t, path).text), " "), says) {
				t.Errorf("%s doesn't say of %s: %s", path, what, says)
			}
		}
		if c.job != "" && !strings.Contains(jobs, "\n  "+c.job+":\n") {
			t.Errorf("there is no job %s for %s", c.job, what)
		}
		rows = append(rows, "| "+c.what+" | "+c.nearest+" | "+cmp.Or(c.job, "–")+" |\n")
	}
	slices.Sort(rows)
	const begin, end = "<!-- never run: begin -->\n", "<!-- never run: end -->"
	p := read(t, "docs/proofs.md")
	before, rest, _ := strings.Cut(p.text, begin)
	was, after, ok := strings.Cut(rest, end)
	want := "| Nothing here runs | Nearest to it that runs | Job of GitHub's ¹ |\n|---|---|---|\n" + strings.Join(rows, "")
	if ok && was != want && *update {
		if err := os.WriteFile(filepath.Join(root, p.path), []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if was != want {
		t.Errorf("%s has another list than\n%s\nwrite it with: go test ./internal/docs -run NeverRun -update", p.path, want)
	}
}

// unrun finds what nothing here runs, and how that is known.
func unrun(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"workflows": "they run at GitHub's alone"}
	prove := read(t, ".ci/prove").text
	for name := range stores(t) {
		as, own := served[name]
		switch _, required, _ := strings.Cut(prove, "REQUIRE_STORES="); {
		case !own:
			found["store "+name] = "its suite runs on another server, or on none"
		case as != "" && !regexp.MustCompile(`^[\w,]*\b`+as+`\b`).MatchString(required):
			found["store "+name] = "make prove doesn't require its server"
		}
		if !own || as != "" || name == "kubernetes" {
			unencrypted(t, name, found)
		}
		for _, parameter := range parameters(t, name) {
			if !isUsed(t, name, parameter) {
				found["parameters "+name] += parameter + " "
			}
		}
	}
	for _, target := range regexp.MustCompile(`(darwin|windows|linux_arm)\w*`).FindAllString(read(t, ".goreleaser.yaml").text, -1) {
		system, _, _ := strings.Cut(target, "_")
		if system == "linux" {
			system = "linux_arm64"
		}
		found["system "+system] = "the tests run on linux/amd64"
	}
	named := runners(t)
	for _, file := range deployed(t) {
		if !strings.Contains(named, path.Base(file)) {
			found["file "+file] = "no test, nor the Makefile, names it"
		}
	}
	return found
}

// stores are the folders of stores.
func stores(t *testing.T) map[string]bool {
	t.Helper()
	found, err := fs.Glob(os.DirFS(root), "store/*/uri.go")
	more, failed := fs.Glob(os.DirFS(root), "store/*/open.go")
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	all := map[string]bool{}
	for _, file := range append(found, more...) {
		all[path.Base(path.Dir(file))] = true
	}
	delete(all, "storekit")
	if len(all) < 12 {
		t.Fatalf("%d stores, want all: %v", len(all), all)
	}
	return all
}

// listed is where a store lists the parameters of its URIs.
var listed = regexp.MustCompile(`(?:is unknown: use |known := \[\]string\{|did you mean |the only option is %s", name\+"=…", )([\w", ]+)`)

// parameters are those that a store's URIs may have.
func parameters(t *testing.T, store string) (all []string) {
	t.Helper()
	code := ""
	for _, file := range []string{"uri.go", "address.go", "open.go"} {
		text, _ := os.ReadFile(filepath.Join(root, "store", store, file))
		code += string(text)
	}
	for _, list := range listed.FindAllStringSubmatch(code, -1) {
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(strings.ReplaceAll(list[1], " or ", " "), -1) {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// isUsed reports whether a test gives a store's parameter to an opened store, be it in the store's folder or by a process: tests that
// only take URIs apart don't count.
func isUsed(t *testing.T, store, parameter string) bool {
	t.Helper()
	given := regexp.MustCompile(`\b` + parameter + `=`)
	for file, text := range testsOf(t, store) {
		if given.MatchString(text) && !strings.Contains(file, "uri_test") && !strings.Contains(file, "fuzz") {
			return true
		}
	}
	return false
}

// testsOf are the tests of a store, and those of leasectl's processes that name it.
func testsOf(t *testing.T, store string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"store/" + store + "/*_test.go", "store/" + store + "/*/*_test.go", "cmd/leasectl/app/*_test.go"} {
		files, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if text := read(t, file).text; !strings.HasPrefix(pattern, "cmd") || strings.Contains(text, store+"://") || strings.Contains(text, store+":") {
				all[file] = text
			}
		}
	}
	return all
}

// unencrypted notes a store that no test reaches over TLS. Kubernetes' server speaks nothing else.
func unencrypted(t *testing.T, store string, found map[string]string) {
	t.Helper()
	for _, text := range testsOf(t, store) {
		if strings.Contains(text, "Certificate(") || strings.Contains(text, "kubepeer.") {
			return
		}
	}
	found["tls "+store] = "no test of it makes a certificate"
}

// deployed are the files that users take as they are, but for those of the chart, which is tested as a whole.
func deployed(t *testing.T) (files []string) {
	t.Helper()
	for _, dir := range []string{"docs", "examples/deploy", "store/kubernetes", "cmd/full"} {
		err := fs.WalkDir(os.DirFS(root), dir, func(file string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "testdata" {
				return fs.SkipDir
			}
			if err == nil && !d.IsDir() && !regexp.MustCompile(`\.(go|md|sum|mod)$`).MatchString(file) && !strings.Contains(file, "/chart/") {
				files = append(files, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// runners are the tests of what is deployed, and what runs further checks.
func runners(t *testing.T) string {
	t.Helper()
	return source(t, true, "examples/deploy", "internal/promtest", "workerlease/promlease", "cmd", "store/kubernetes") + read(t, "Makefile").text
}
