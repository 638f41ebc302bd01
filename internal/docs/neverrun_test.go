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
		map[string]string{"README.md": "(by MariaDB), Cosmos DB", "docs/stores/cosmos.md": "never on a real account"},
	},
	"store s3": {
		"Amazon S3", "Versity's gateway", "named",
		map[string]string{"README.md": "S3 and Azure Blob Storage", "docs/stores/buckets.md": "Tested on stand-ins"},
	},
	"store azblob": {
		"Azure Blob Storage", "Azurite, which is Microsoft's", "named",
		map[string]string{"README.md": "S3 and Azure Blob Storage", "docs/stores/buckets.md": "Tested on stand-ins"},
	},
	"system darwin":        {"macOS", "types, by `make portable`", "quick", map[string]string{"README.md": "macOS and Windows are untested", "docs/install.md": "For macOS and Windows, and for 32 bits on x86, only the types are checked"}},
	"system windows":       {"Windows", "types, by `make portable`", "quick", map[string]string{"README.md": "macOS and Windows are untested", "docs/install.md": "For macOS and Windows, and for 32 bits on x86, only the types are checked"}},
	"system linux_arm":     {"Linux on ARM", "amd64", "quick", map[string]string{"docs/install.md": "for Linux on ARM, nothing is"}},
	"server Valkey":        {"Valkey", "Redis 7.0", "servers", map[string]string{"docs/stores/redis.md": "Valkey is untested", "docs/stores.md": "Valkey, which is untested"}},
	"deploy compose":       {"Docker and its compose, and the image", "the file is read as Docker reads it, and its jobs run as processes", "deploy", map[string]string{"examples/deploy/README.md": "In containers in GitHub's CI only"}},
	"deploy nomad":         {"Nomad", "the job is read by HCL's parser", "", map[string]string{"examples/deploy/README.md": "never on Nomad"}},
	"workflows":            {"The workflows on GitHub, and what only they would run", "actionlint; each URI in them, by its store", "", map[string]string{"docs/upgrading.md": "have not run yet"}},
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
	want := "| Nothing here runs | Nearest to it that runs | Job on GitHub ¹ |\n|---|---|---|\n" + strings.Join(rows, "")
	if ok && was != want && *update {
		must(t, os.WriteFile(filepath.Join(root, p.path), []byte(before+begin+want+end+after), 0o600))
	} else if was != want {
		t.Errorf("%s has another list than\n%s\nwrite it with: go test ./internal/docs -run NeverRun -update", p.path, want)
	}
}

// Parameters in URIs of stores that no test here opens by a URI of a page: internal/named opens those of all others.
func TestParametersThatAreShownAreThoseOfTheStore(t *testing.T) {
	shown := 0
	for scheme, store := range map[string]string{"etcds?": "etcd", "nats": "nats", "k8s": "kubernetes", "sqlserver": "sqlserver"} {
		all := parameters(t, store)
		for _, p := range append(pages(t), read(t, ".github/workflows/ci.yml"), read(t, "store/"+store+"/doc.go")) {
			for _, uri := range regexp.MustCompile(`\b`+scheme+":(?://)?[^\\s?'\"`]*\\?([^\\s'\"`|]*)").FindAllStringSubmatch(p.text, -1) {
				for pair := range strings.SplitSeq(uri[1], "&") {
					name, _, _ := strings.Cut(pair, "=")
					if shown++; !slices.Contains(all, name) {
						t.Errorf("%s shows %s, and %s has no parameter %s", p.path, uri[0], store, name)
					}
				}
			}
		}
	}
	if shown < 4 {
		t.Errorf("%d parameters are shown, want all", shown)
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
	for _, targets := range regexp.MustCompile(`targets: \[(.*)\]`).FindAllStringSubmatch(read(t, ".goreleaser.yaml").text, -1) {
		for target := range strings.SplitSeq(targets[1], ", ") {
			if target != "linux_amd64" {
				found["system "+regexp.MustCompile(`^(darwin|windows|linux_arm).*`).ReplaceAllString(target, "$1")] = "the tests run on linux/amd64"
			}
		}
	}
	for _, row := range read(t, "docs/upgrading.md").table(t, "| | By `make prove`, on Debian 12 | Besides, by GitHub's workflows ¹ |") {
		if row[1] == "" && row[0] != "MySQL" && row[0] != "SQL Server" { // These two have stores of their own.
			found["server "+row[0]] = "docs/upgrading.md says that no version was run"
		}
	}
	for _, dir := range []string{"compose", "nomad"} {
		found["deploy "+dir] = "there is neither Docker nor Nomad"
	}
	named := runners(t)
	for _, file := range deployed(t) {
		dir := ""
		if strings.HasPrefix(file, "examples") {
			dir = path.Base(path.Dir(file)) + "/"
		}
		if !strings.Contains(named, path.Base(file)) || !strings.Contains(named, dir) {
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
var listed = regexp.MustCompile(`(?:is unknown: use |Parameters\(query, \[\]string\{|known := \[\]string\{|did you mean |unsafeFileSystem += "\?)([\w", ]+)`)

// parameters are those that a store's URIs may have.
func parameters(t *testing.T, store string) (all []string) {
	t.Helper()
	for _, list := range listed.FindAllStringSubmatch(source(t, false, "store/"+store), -1) {
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(strings.ReplaceAll(list[1], " or ", " "), -1) {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	if len(all) == 0 && store != "memory" {
		t.Errorf("no parameters of %s are found: it lists them otherwise than others", store)
	}
	return all
}

// isUsed reports whether a test gives a store's parameter to an opened store, be it in the store's folder or by a process: tests that
// only take URIs apart don't count.
func isUsed(t *testing.T, store, parameter string) bool {
	t.Helper()
	given, comment := regexp.MustCompile(`\b`+parameter+`=(\w*)`), regexp.MustCompile("//[^\n\"`]*\n")
	for file, text := range testsOf(t, store) {
		if regexp.MustCompile("uri_test|fuzz|example_test").MatchString(file) {
			continue
		}
		for _, value := range given.FindAllStringSubmatch(comment.ReplaceAllString(text, "\n"), -1) {
			if !slices.Contains([]string{"soon", "never"}, value[1]) { // which no store takes
				return true
			}
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
		must(t, err)
		for _, file := range files {
			if text := read(t, file).text; !strings.HasPrefix(pattern, "cmd") || strings.Contains(text, cmp.Or(map[string]string{"kubernetes": "k8s", "mongo": "mongodb"}[store], store)+":") {
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
		must(t, err)
	}
	return files
}

// runners are the tests of what is deployed, and what runs further checks.
func runners(t *testing.T) string {
	t.Helper()
	return source(t, true, "examples/deploy", "internal/promtest", "workerlease/promlease", "cmd", "store/kubernetes") + read(t, "Makefile").text
}
