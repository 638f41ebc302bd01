package promlease_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/promlease"
)

// metric is what is known of a metric that is scraped: its type, and its labels with their values.
type metric struct {
	dto.MetricType

	labels map[string][]string
}

// scraped are the metrics of a worker whose task succeeds.
func scraped(t *testing.T) map[string]metric {
	t.Helper()
	out := map[string]metric{}
	synctest.Test(t, func(t *testing.T) {
		m, r := metrics(t, promlease.Options{})
		client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{Observer: m})
		w, err := client.StartTask(t.Context(), workerlease.Options{WorkerType: "job", LeaseInterval: time.Minute, Job: &workerlease.Job{}}, func(context.Context, workerlease.Lease) error {
			time.Sleep(45 * time.Second)
			return nil
		})
		must(t, err)
		time.Sleep(90 * time.Second)
		synctest.Wait()
		families, err := r.Gather()
		must(t, err)
		for _, f := range families {
			known := metric{f.GetType(), map[string][]string{"job": nil, "instance": nil}}
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					known.labels[l.GetName()] = append(known.labels[l.GetName()], l.GetValue())
				}
			}
			known.labels["worker_type"] = nil // any
			out[f.GetName()] = known
		}
		if err := w.StopLeasing(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if len(out) < 50 {
		t.Fatalf("%d metrics are scraped, want all", len(out))
	}
	return out
}

var (
	selector    = regexp.MustCompile(`(slotlease_\w+)(\{[^}]*\})?`)
	matcher     = regexp.MustCompile(`(\w+)(=~|!=|!~|=)"([^"]*)"`)
	aggregation = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
)

// check reports names, labels and values in an expression that no metric has. It returns the labels of the
// result, as far as they are those of its first aggregation.
func check(t *testing.T, known map[string]metric, where, expr string) []string {
	t.Helper()
	labels := map[string]bool{"job": true, "instance": true}
	found := selector.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 {
		t.Errorf("%s: no metric in %s", where, expr)
	}
	for _, s := range found {
		m, ok := known[s[1]]
		if base, cut := strings.CutSuffix(s[1], "_bucket"); cut {
			m, ok = known[base]
			ok, labels["le"] = ok && m.MetricType == dto.MetricType_HISTOGRAM, true
		}
		if !ok || !strings.Contains(s[1], "_bucket") && m.MetricType == dto.MetricType_HISTOGRAM {
			t.Errorf("%s: no metric is named %s", where, s[1])
			continue
		}
		for label := range m.labels {
			labels[label] = true
		}
		for _, l := range matcher.FindAllStringSubmatch(s[2], -1) {
			values, ok := m.labels[l[1]]
			if !ok || values != nil && l[2] == "=" && !slices.Contains(values, l[3]) {
				t.Errorf("%s: %s has no %s=%q", where, s[1], l[1], l[3])
			}
		}
	}
	var first []string
	for i, a := range aggregation.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(a[1], ", ") {
			if !labels[label] {
				t.Errorf("%s: no metric of %s has the label %q", where, expr, label)
			}
			if i == 0 {
				first = append(first, label)
			}
		}
	}
	return first
}

// document is a file of docs/.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	must(t, err)
	return string(text)
}

func TestAlertsUseMetricsThatThereAre(t *testing.T) {
	known := scraped(t)
	text := document(t, "prometheus-alerts.yml")
	expr := regexp.MustCompile(`(?m)^        expr: (?:\|\n((?:          .*\n)+)|(.*\n))`)
	rules := strings.Split(text, "      - alert: ")[1:]
	for _, rule := range rules {
		name, _, _ := strings.Cut(rule, "\n")
		e := expr.FindStringSubmatch(rule)
		if e == nil {
			t.Errorf("%s has no expression", name)
			continue
		}
		labels := check(t, known, name, e[1]+e[2])
		for _, l := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(rule, -1) {
			if !slices.Contains(labels, l[1]) {
				t.Errorf("%s says {{ $labels.%s }}, and its result has only %v", name, l[1], labels)
			}
		}
		for _, annotation := range []string{"summary", "description", "run"} {
			if !strings.Contains(rule, "\n          "+annotation+": ") {
				t.Errorf("%s has no %s", name, annotation)
			}
		}
		if row := "| `" + name + "` |"; !strings.Contains(document(t, "monitoring.md"), row) {
			t.Errorf("docs/monitoring.md doesn't list %s", name)
		}
		if tests := string(read(t, "testdata/alerts.yml")); !strings.Contains(tests, "alertname: "+name+"\n") {
			t.Errorf("no test in testdata/alerts.yml lets %s fire", name)
		}
	}
	if len(rules) < 15 {
		t.Errorf("%d rules, want more", len(rules))
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return text
}

// panel is what is looked at of a panel of the dashboard.
type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	Targets                  []struct{ Expr, LegendFormat string }
}

func dashboard(t *testing.T) (panels []panel, variables []string) {
	t.Helper()
	var d struct {
		Panels     []panel
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	must(t, json.Unmarshal([]byte(document(t, "grafana-dashboard.json")), &d))
	for _, v := range d.Templating.List {
		variables = append(variables, v.Definition)
	}
	return d.Panels, variables
}

func TestTheDashboardUsesMetricsThatThereAre(t *testing.T) {
	known := scraped(t)
	panels, variables := dashboard(t)
	shown := map[string]bool{}
	for _, p := range panels {
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d (%q) has no title, description or query", p.ID, p.Title)
		}
		for _, q := range p.Targets {
			labels := check(t, known, p.Title, q.Expr)
			for _, s := range selector.FindAllStringSubmatch(q.Expr, -1) {
				shown[strings.TrimSuffix(s[1], "_bucket")] = true
				if s[2] != `{worker_type=~"$worker_type"}` {
					t.Errorf("%s: %s%s doesn't go by the worker types that were chosen", p.Title, s[1], s[2])
				}
			}
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				if !slices.Contains(labels, l[1]) {
					t.Errorf("%s: the legend has %s, and the result of %s has only %v", p.Title, l[1], q.Expr, labels)
				}
			}
		}
	}
	for _, v := range variables {
		if v != "" {
			check(t, known, "variable", v)
		}
	}
	unshown := []string{"slotlease_slots_lost_total", "slotlease_leases_allocated_total", "slotlease_slot_done"} // others say the same
	for name := range known {
		if !shown[name] && !slices.Contains(unshown, name) {
			t.Errorf("no panel shows %s", name)
		}
	}
}

func TestPanelsOfTheDashboardDontOverlap(t *testing.T) {
	panels, _ := dashboard(t)
	taken := map[[2]int]int{}
	ids := map[int]bool{}
	for _, p := range panels {
		if ids[p.ID] {
			t.Errorf("two panels have the ID %d", p.ID)
		}
		ids[p.ID] = true
		if p.GridPos.W <= 0 || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.H <= 0 {
			t.Errorf("%q is at %+v", p.Title, p.GridPos)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, ok := taken[at]; ok {
					t.Fatalf("%q lies over panel %d", p.Title, other)
				}
				taken[at] = p.ID
			}
		}
	}
}
