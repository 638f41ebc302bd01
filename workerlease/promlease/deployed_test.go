package promlease_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/promlease"
)

// process is one of the application's: a worker, and what it answers to a scrape.
type process struct {
	registry *prometheus.Registry
	worker   *workerlease.WorkerLease
}

func (p process) stop(t *testing.T) {
	t.Helper()
	if err := p.worker.StopLeasing(context.Background()); err != nil {
		t.Error(err)
	}
}

// deployed starts a process whose worker leads for an hour at a time or, with a job, does that within a minute.
func deployed(t *testing.T, ledger store.Ledger, job *workerlease.Job) process {
	t.Helper()
	m, r := metrics(t, promlease.Options{})
	o := workerlease.Options{WorkerType: "job", LeaseInterval: time.Hour, Job: job}
	w, err := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: m}).StartTask(t.Context(), o, func(ctx context.Context, _ workerlease.Lease) error {
		if job == nil {
			<-ctx.Done()
		}
		return nil
	})
	must(t, err)
	return process{r, w}
}

// labels are those of a series as others write them.
var labels = regexp.MustCompile(`=([^,}]*)`)

// A deployment is no alarm: neither a process that has just come, beside the one that holds the lease or after it has done the
// job, nor the first of all, in mid-slot. The published alerts read what real processes answer.
func TestNoAlertFiresForADeployment(t *testing.T) {
	rules, err := filepath.Abs(filepath.Join("..", "..", "docs", "prometheus-alerts.yml"))
	must(t, err)
	for name, c := range map[string]struct {
		deploy func(t *testing.T, l *memory.Ledger) []process
		fires  string
	}{
		"beside the holder": {func(t *testing.T, l *memory.Ledger) []process {
			old := deployed(t, l, nil)
			time.Sleep(80 * time.Minute)
			return []process{old, deployed(t, l.Handle(), nil)}
		}, ""},
		"after the job is done": {func(t *testing.T, l *memory.Ledger) []process {
			old := deployed(t, l, &workerlease.Job{})
			time.Sleep(80 * time.Minute)
			old.stop(t)
			return []process{deployed(t, l.Handle(), &workerlease.Job{})}
		}, ""},
		"the first, in mid-slot": {func(t *testing.T, l *memory.Ledger) []process {
			time.Sleep(20 * time.Minute)
			return []process{deployed(t, l, nil)}
		}, ""},
		"the first of a job, in mid-slot": {func(t *testing.T, l *memory.Ledger) []process {
			time.Sleep(20 * time.Minute)
			return []process{deployed(t, l, &workerlease.Job{})}
		}, ""},
		"without failover the rest of the slot is lost": {func(t *testing.T, l *memory.Ledger) []process {
			old := deployed(t, l, nil)
			time.Sleep(80 * time.Minute)
			old.stop(t)
			return []process{deployed(t, l.Handle(), nil)}
		}, "SlotleaseNobodyHolds"},
	} {
		t.Run(name, func(t *testing.T) {
			const every, scrapes = 30 * time.Second, 50
			values := map[string][]string{}
			synctest.Test(t, func(t *testing.T) {
				scraped := c.deploy(t, memory.New(memory.Options{}))
				from := float64(time.Now().Unix())
				for n := range scrapes {
					time.Sleep(every)
					synctest.Wait()
					for i, p := range scraped {
						for of, x := range series(t, p.registry) {
							if strings.Contains(of, "timestamp_seconds") {
								x -= from // promtool's time begins with 0.
							}
							key := labels.ReplaceAllString(of, `="$1"`)
							key = strings.TrimSuffix(key, "}") + fmt.Sprintf(`, job="app", instance="%d"}`, i)
							for len(values[key]) < n {
								values[key] = append(values[key], "_")
							}
							values[key] = append(values[key], fmt.Sprint(x))
						}
					}
				}
				for _, p := range scraped {
					p.stop(t)
				}
			})
			var b strings.Builder
			fmt.Fprintf(&b, "rule_files: [%q]\nevaluation_interval: 30s\ntests:\n  - interval: 30s\n    input_series:\n", rules)
			for _, key := range slices.Sorted(maps.Keys(values)) {
				fmt.Fprintf(&b, "      - series: '%s'\n        values: %s\n", key, strings.Join(values[key], " "))
			}
			b.WriteString("    promql_expr_test:\n      - expr: sort(ALERTS{alertstate=\"firing\"})\n        eval_time: 24m\n")
			if c.fires == "" {
				b.WriteString("        exp_samples: []\n")
			} else {
				fmt.Fprintf(&b, "        exp_samples: [{labels: 'ALERTS{alertname=%q, alertstate=\"firing\", severity=\"critical\", worker_type=\"job\"}', value: 1}]\n", c.fires)
			}
			input := filepath.Join(t.TempDir(), "deployed.yml")
			must(t, os.WriteFile(input, []byte(b.String()), 0o600))
			promtool(t, "", "test", "rules", input)
		})
	}
}
