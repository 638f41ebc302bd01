// Package promlease exposes what happens to workers as Prometheus metrics.
//
//	m, err := promlease.New(prometheus.DefaultRegisterer, promlease.Options{})
//	…
//	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: m})
//	http.Handle("/metrics", promhttp.Handler())
//
// [New] registers all metrics at once, and the metrics observe any number of clients.
// docs/metrics.md lists them; docs/prometheus-alerts.yml and docs/grafana-dashboard.json are rules and a
// dashboard for them. Counters count events; gauges, such as who holds and how far the clock is off, are
// asked of the workers at each scrape, which asks no store.
//
// # Cardinality
//
// The labels are worker_type and, where one fits, reason or operation, whose values are fixed. No label
// has names of workers, errors, slots or times. A worker type has about 180 series. The first
// [Options.WorkerTypes] worker types of a process have their own; all others are counted together as _other.
package promlease
