package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
)

// result is the outcome of one target.
type result struct {
	target  target
	execs   int64
	elapsed time.Duration
	// ranOut says that the time ended while an input was being minimized, which the
	// fuzzer reports as a failure of the target, though it found none.
	ranOut bool
	// failure is the whole output if the target failed, else empty.
	failure string
}

// progress is a line of the fuzzer. The last one counts.
var progress = regexp.MustCompile(`(?m)^fuzz: elapsed: (\S+), execs: (\d+) `)

// read parses the output of the fuzzer.
func read(t target, out string) result {
	r := result{target: t}
	if lines := progress.FindAllStringSubmatch(out, -1); len(lines) > 0 {
		last := lines[len(lines)-1]
		r.elapsed, _ = time.ParseDuration(last[1])
		r.execs, _ = strconv.ParseInt(last[2], 10, 64)
	}
	r.ranOut = strings.Contains(out, "context deadline exceeded") && !strings.Contains(out, "Failing input written") && !strings.Contains(out, "panic:")
	return r
}

// row writes a row of the table.
func row(out io.Writer, target, execs, elapsed, state string) {
	_, _ = fmt.Fprintf(out, "%-48s %14s %10s  %s\n", target, execs, elapsed, state)
}

func (r result) print(out io.Writer) {
	state := "ok"
	if r.failure != "" {
		state = "FAIL"
	}
	row(out, r.target.String(), grouped(r.execs), r.elapsed.String(), state)
	if r.failure != "" {
		_, _ = fmt.Fprintf(out, "%s\n", strings.TrimSpace(r.failure))
	}
}

// grouped is a number with a comma between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// summary is the outcome of all targets.
type summary struct {
	targets, failed int
	execs           int64
	least           int64 // executions of the target that had the fewest
	elapsed         time.Duration
}

func sum(results []result) summary {
	s := summary{targets: len(results)}
	for i, r := range results {
		if i == 0 || r.execs < s.least {
			s.least = r.execs
		}
		s.execs += r.execs
		s.elapsed += r.elapsed
		if r.failure != "" {
			s.failed++
		}
	}
	return s
}

// unfit are characters that the name of a proof doesn't have.
var unfit = regexp.MustCompile(`[^A-Za-z0-9]+`)

// proof is the summary as figures. A run of some of the targets gets its own name.
func (s summary) proof(o options) figures.Proof {
	name, command := "fuzzing", "go run ./internal/figures/fuzz -n "+strings.TrimSuffix(o.n, "x")
	if only := o.only.String(); only != "" {
		name += "-" + only
		command += " -run '" + only + "'"
	}
	if !slices.Equal(o.packages, everything) {
		name += "-" + strings.Join(o.packages, "-")
		command += " " + strings.Join(o.packages, " ")
	}
	return figures.Proof{
		Name:    strings.Trim(unfit.ReplaceAllString(name, "-"), "-"),
		Command: command,
		Figures: []figures.Figure{
			{What: "targets", Value: strconv.Itoa(s.targets)},
			{What: "executions", Value: grouped(s.execs)},
			{What: "of each at least", Value: grouped(s.least)},
			{What: "targets that failed", Value: strconv.Itoa(s.failed)},
		},
	}
}
