//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// row is what one case showed of one peer.
type row struct {
	Case, Peer    string
	Bound         time.Duration
	Rounds        int
	P50, P99, Max time.Duration // from the end of the holder until the standby worked
	PerMinute     float64       // operations of one holder and one standby
	Lost          int           // how often a holder that lived lost its lease
	Missing       string        // what isn't installed
	Failed        string
}

func (r *row) fail(err error) {
	if errors.Is(err, errMissing) {
		r.Missing = err.Error()
		return
	}
	r.Failed = err.Error()
}

// set sets the figures of what took some time.
func (r *row) set(took []time.Duration) {
	slices.Sort(took)
	if r.Rounds = len(took); r.Rounds > 0 {
		r.P50, r.P99, r.Max = percentile(took, 50), percentile(took, 99), percentile(took, 100)
	}
}

// percentile is the least of sorted durations that p percent of them don't exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

// report writes the rows as one table of Markdown for each case.
func report(w io.Writer, rows []row) error {
	var b strings.Builder
	last := ""
	for _, r := range rows {
		if r.Case != last {
			b.WriteString("\n" + headings[r.Case])
			last = r.Case
		}
		fmt.Fprintf(&b, "| %s | %v | %s |\n", r.Peer, r.Bound, strings.Join(r.cells(), " | "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var headings = map[string]string{
	"failover": "The holder is killed\n\n| Peer | Bound d | Kills | p50 | p99 | Most | Operations a minute | Lost without a kill |\n|---|---|---|---|---|---|---|---|\n",
	"handover": "The holder stops\n\n| Peer | Bound d | Stops | p50 | p99 | Most |\n|---|---|---|---|---|---|\n",
}

func (r *row) cells() []string {
	if r.Missing != "" || r.Failed != "" {
		return []string{strings.ReplaceAll(r.Missing+r.Failed, "\n", " ")}
	}
	multiple := func(d time.Duration) string { return fmt.Sprintf("%.2f d", float64(d)/float64(r.Bound)) }
	short := func(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }
	cells := []string{fmt.Sprint(r.Rounds)}
	switch r.Case {
	case "failover":
		return append(cells, multiple(r.P50), multiple(r.P99), multiple(r.Max), fmt.Sprintf("%.0f", r.PerMinute), fmt.Sprint(r.Lost))
	default:
		return append(cells, short(r.P50), short(r.P99), short(r.Max))
	}
}
