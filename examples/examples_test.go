package examples

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

func TestEveryExampleRunsAndEndsByItself(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs and runs them for some seconds")
	}
	suites.Prove(t, "it builds programs and runs them for some seconds")
	bin := build(t)
	for name, want := range map[string][]string{ // patterns, in the order of the output
		"leader":  {`(anna|ben|cleo) leads`, `leads no more: leasing stopped`, `(anna|ben|cleo) leads`, `leads no more`},
		"outbox":  {`publishes order 1`, `publishes order 3`, `publishes order 4`, `publishes order 5`, `is refused: a later lease`},
		"cronjob": {`anna runs the job`, `anna stops`, `ben runs the job`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, run(t, exec.CommandContext(within(t), bin(name))), want...)
		})
	}

	t.Run("mongo", func(t *testing.T) {
		t.Parallel()
		uri, database := mongopeer.URI(t), fmt.Sprint("examples-", os.Getpid())
		t.Cleanup(func() { drop(t, uri, database) })
		cmd := exec.CommandContext(within(t), bin("mongo"), "-database", database)
		cmd.Env = append(os.Environ(), "MONGODB_URI="+uri)
		expect(t, run(t, cmd), `the ledger is mongodb://.*, database `+database, `published under token \d+`, `published under token \d+`, `published under token \d+`)
	})

	t.Run("cosmos", func(t *testing.T) {
		t.Parallel()
		connection, database := cosmosConnection(t), fmt.Sprint("examples-", os.Getpid())
		cmd := exec.CommandContext(within(t), bin("cosmos"), "-database", database)
		cmd.Env = append(os.Environ(), "COSMOS_CONNECTION_STRING="+connection)
		expect(t, run(t, cmd), `the ledger is cosmos `+database+`/WorkerLeases at `, `published under token \d+`, `published under token \d+`, `published under token \d+`, `leasing was charged \d+\.\d request units`)
	})

	for name, without := range map[string]struct {
		env  string
		want []string
	}{
		"mongo": {"MONGODB_URI=mongodb://user:c4n4ry@127.0.0.1:1/?authSource=admin", []string{`the ledger is mongodb://`, `is there a server\? MONGODB_URI`}},
		"cosmos": {
			"COSMOS_CONNECTION_STRING=AccountEndpoint=http://127.0.0.1:1/;AccountKey=c4n4ryc4n4ry;",
			[]string{`the ledger is cosmos slotlease/WorkerLeases at 127\.0\.0\.1:1`, `is there an account\? COSMOS_CONNECTION_STRING`},
		},
	} {
		t.Run(name+" without a server", func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(within(t), bin(name))
			cmd.Env = append(os.Environ(), without.env)
			out, err := cmd.CombinedOutput()
			if err == nil || strings.Contains(string(out), name+": "+name+":") || strings.Contains(string(out), "c4n4ry") {
				t.Errorf("%v ended with %v, and wrote %s", cmd, err, out)
			}
			expect(t, string(out), append(without.want, `connection refused`)...)
		})
	}

	t.Run("webapp", func(t *testing.T) {
		t.Parallel()
		cmd := exec.CommandContext(within(t), bin("webapp"),
			"-for", "8s", "-addr", "127.0.0.1:0", "-ledger", filepath.Join(t.TempDir(), "leases.db"))
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(&out, lines.Text())
			if _, url, found := strings.Cut(lines.Text(), "listening on "); found {
				expectOK(t, url+"/livez", "sitemap")
				ready(t, url+"/healthz")
				expectOK(t, url+"/healthz", "sitemap")
				expectOK(t, url+"/", `href="/healthz"`)
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v ended with %v, want exit code 0", cmd, err)
		}
		expect(t, out.String(), `listening on http://127\.0\.0\.1:\d+`, `sitemap: page 1, token \d+`)
	})
}

// build builds all examples, and returns where they are.
func build(t *testing.T) (path func(name string) string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), "./...")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return func(name string) string {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		return filepath.Join(dir, name)
	}
}

// within is long enough for a machine that is busy with other tests.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v ended with %v, want exit code 0", cmd, err)
	}
	return string(out)
}

func expect(t *testing.T, out string, want ...string) {
	t.Helper()
	if !regexp.MustCompile(`(?s)` + strings.Join(want, `.*?`)).MatchString(out) {
		t.Errorf("output:\n%s\nwant, in this order: %q", out, want)
	}
}

func expectOK(t *testing.T, url, text string) {
	t.Helper()
	if code, body := get(t, url); code != http.StatusOK || !strings.Contains(body, text) {
		t.Errorf("GET %s = %d, %q, want 200 and %q in it", url, code, body, text)
	}
}

// ready waits until a probe succeeds: a worker is not healthy before the store has answered.
func ready(t *testing.T, url string) {
	t.Helper()
	for range 100 {
		if code, _ := get(t, url); code == http.StatusOK {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(b)
}

// cosmosConnection is the connection string of the Cosmos DB peer. The data that
// is left there ends with the peer; a real account is none of this test's.
func cosmosConnection(t *testing.T) string {
	t.Helper()
	if os.Getenv("COSMOS_URI") != "" {
		t.Skip("COSMOS_URI is set: databases in a real account would have to be paid for")
	}
	u, err := url.Parse(cosmospeer.URI(t))
	if err != nil {
		t.Fatal(err)
	}
	return "AccountEndpoint=http://" + u.Host + "/;AccountKey=" + cosmospeer.Key() + ";"
}

// drop leaves a server that isn't ours as it was.
func drop(t *testing.T, uri, database string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := driver.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Error(err)
		return
	}
	if err := client.Database(database).Drop(ctx); err != nil {
		t.Error(err)
	}
	_ = client.Disconnect(ctx)
}
