//go:build linux

package promtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// server is a Prometheus server.
type server struct {
	url, dir string
	log      bytes.Buffer
}

// config scrapes targets once a second, and evaluates the rules as often.
const config = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: app
    file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]
`

// rules are those of docs/, scaled down: what they wait and look back for is a few seconds.
func rules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "prometheus-alerts.yml"))
	must(t, err)
	scaled := regexp.MustCompile(`(?m)^(\s+for: ).*$`).ReplaceAllString(string(text), "${1}1s")
	scaled = regexp.MustCompile(`offset \d+[mh]`).ReplaceAllString(scaled, "offset 20s")
	return regexp.MustCompile(`\[\d+[mh]\]`).ReplaceAllString(scaled, "[20s]")
}

// serve starts a server on the loopback interface, which is killed with the test. Without the program the
// test is skipped, or fails if REQUIRE_PROMETHEUS is set.
func serve(t *testing.T, targets ...string) *server {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("REQUIRE_PROMETHEUS") != "" {
			t.Fatal("REQUIRE_PROMETHEUS is set, and there is no prometheus: install Debian's package")
		}
		t.Skip("there is no prometheus: Debian's package has it")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"config.yml": config, "rules.yml": rules(t)} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s := &server{dir: dir}
	s.target(t, targets...)
	// Another process may take the port in between.
	for range 5 {
		if s.try(t, path) {
			return s
		}
	}
	t.Fatalf("prometheus doesn't start:\n%s", s.log.String())
	return nil
}

// target says what to scrape.
func (s *server) target(t *testing.T, targets ...string) {
	t.Helper()
	text, err := json.Marshal([]any{map[string]any{"targets": targets}})
	must(t, err)
	// Renamed, so that it is never read half written.
	next := filepath.Join(s.dir, "next")
	must(t, os.WriteFile(next, text, 0o600))
	must(t, os.Rename(next, filepath.Join(s.dir, "targets.json")))
}

// try starts the server on a port that is free, and reports whether it answers.
func (s *server) try(t *testing.T, path string) bool {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := free.Addr().String()
	must(t, free.Close())
	s.url = "http://" + address
	s.log.Reset()
	c := exec.Command(path, "--config.file="+filepath.Join(s.dir, "config.yml"), "--storage.tsdb.path="+filepath.Join(s.dir, "data"), "--web.listen-address="+address)
	c.Stdout, c.Stderr = &s.log, &s.log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, c.Start())
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case <-ended:
			return false
		default:
		}
		if r, err := http.Get(s.url + "/-/ready"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return true
			}
		}
	}
	_ = c.Process.Kill()
	<-ended
	return false
}

// get asks the server's API.
func (s *server) get(t *testing.T, path string, data any) {
	t.Helper()
	r, err := http.Get(s.url + path)
	must(t, err)
	defer r.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %s %s, %v", path, answer.Status, answer.Error, err)
	}
}

// query returns the value of each series of a query's result, by its labels.
func (s *server) query(t *testing.T, q string) map[string]float64 {
	t.Helper()
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	s.get(t, "/api/v1/query?query="+url.QueryEscape(q), &data)
	out := map[string]float64{}
	for _, r := range data.Result {
		text, _ := r.Value[1].(string)
		x, err := strconv.ParseFloat(text, 64)
		must(t, err)
		out[fmt.Sprint(r.Metric)] = x
	}
	return out
}

// value returns the result of a query that has no labels; -1 if there is none.
func (s *server) value(t *testing.T, q string) float64 {
	t.Helper()
	for _, x := range s.query(t, q) {
		return x
	}
	return -1
}

// names are the names of all metrics of this project that a target has.
func (s *server) names(t *testing.T, instance string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for labels := range s.query(t, `count by (__name__) ({__name__=~"slotlease_.*", instance="`+instance+`"})`) {
		out[strings.TrimSuffix(strings.TrimPrefix(labels, "map[__name__:"), "]")] = true
	}
	return out
}

// firing returns the annotation "summary" of an alert that fires; empty if it doesn't.
func (s *server) firing(t *testing.T, name string) string {
	t.Helper()
	var data struct {
		Alerts []struct {
			State               string
			Labels, Annotations map[string]string
		}
	}
	s.get(t, "/api/v1/alerts", &data)
	for _, a := range data.Alerts {
		if a.State == "firing" && a.Labels["alertname"] == name {
			return a.Annotations["summary"]
		}
	}
	return ""
}

// eventually waits until something is so.
func eventually(t *testing.T, within time.Duration, what string, is func() bool) {
	t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > within {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("after %v: %s", time.Since(began).Round(100*time.Millisecond), what)
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
