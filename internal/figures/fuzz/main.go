// Command fuzz runs every fuzz target of the module, one after the other, and
// counts:
//
//	go run ./internal/figures/fuzz -n 10000000
//
// -n is the number of executions of each target, or a duration (30s). Figures are
// saved (see [figures.Variable]). It exits with 1 if any target fails; the input is
// then in testdata/fuzz of its package.
//
// It builds the test binaries itself, as go test -fuzz does, but measures the
// coverage only of the code that inputs pass through (see instrumented): go test
// measures all linked code, including SQLite, which costs most of the speed. The
// interesting inputs are kept where go test -fuzz keeps them.
//
// The fuzzer reports an execution of more than 10 s by the wall clock as one that
// hangs. On a machine so busy that a process waits that long for a processor, targets
// fail without a fault; the input then passes when it is run alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// options are those of one run.
type options struct {
	n        string // for -fuzztime
	only     *regexp.Regexp
	packages []string
}

// everything is where targets are looked for unless packages are named.
var everything = []string{"./..."}

func parseOptions(args []string) (options, error) {
	o := options{packages: everything}
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	n := flags.String("n", "30s", "`number` of executions of each target, or a duration")
	only := flags.String("run", "", "only the targets that match this `pattern`, as PACKAGE.FuzzName")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		o.packages = flags.Args()
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return options{}, fmt.Errorf("-run: %w", err)
	}
	o.n, err = fuzzTime(*n)
	return o, err
}

// fuzzTime makes a count or a duration of -n.
func fuzzTime(n string) (string, error) {
	if count, err := strconv.ParseInt(n, 10, 64); err == nil && count > 0 {
		return n + "x", nil
	}
	if d, err := time.ParseDuration(n); err == nil && d > 0 {
		return n, nil
	}
	return "", fmt.Errorf("-n %q: must be a count, such as 10000000, or a duration, such as 30s", n)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	targets, err := find(ctx, o)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return fmt.Errorf("no targets in %v match -run %q", o.packages, o.only)
	}
	dir, err := os.MkdirTemp("", "slotlease-fuzz-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// Build all first: a package that doesn't build is found before hours are spent.
	for i, t := range targets { // those of a package follow each other
		if i > 0 && targets[i-1].pkg.ImportPath == t.pkg.ImportPath {
			continue
		}
		if err := t.build(ctx, dir); err != nil {
			return err
		}
	}
	var results []result
	row(out, "target", "executions", "time", "")
	for _, t := range targets {
		r, err := t.fuzz(ctx, dir, o)
		if err != nil {
			return err
		}
		r.print(out)
		results = append(results, r)
	}
	s := sum(results)
	if err := figures.Save(s.proof(o)); err != nil {
		return err
	}
	row(out, fmt.Sprintf("%d targets", s.targets), grouped(s.execs), s.elapsed.String(), "")
	if s.failed > 0 {
		return fmt.Errorf("%d of %d targets failed", s.failed, s.targets)
	}
	return nil
}
