package promlease_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/promlease"
)

// promtool runs Debian's promtool on an input. Without it the test is skipped, or fails if REQUIRE_PROMETHEUS is set.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("REQUIRE_PROMETHEUS") != "" {
			t.Fatal("REQUIRE_PROMETHEUS is set, and there is no promtool: install Debian's package prometheus")
		}
		t.Skip("there is no promtool: Debian's package prometheus has it")
	}
	c := exec.CommandContext(t.Context(), path, args...)
	c.Stdin = strings.NewReader(input)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestPrometheusAcceptsTheAlerts(t *testing.T) {
	promtool(t, "", "check", "rules", "--lint=all", "--lint-fatal", filepath.Join("..", "..", "docs", "prometheus-alerts.yml"))
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool(t, "", "test", "rules", filepath.Join("testdata", "alerts.yml"))
}

func TestPrometheusAcceptsTheMetrics(t *testing.T) {
	m, r := metrics(t, promlease.Options{})
	m.Observe(event.Started{Worker: event.Worker{WorkerType: "job"}})
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	promtool(t, answer.Body.String(), "check", "metrics")
}
