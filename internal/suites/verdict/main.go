// Command verdict reads what go test -json has written, from the files that its arguments name, and tells what a green run may
// hide: tests that were skipped though skips.tsv doesn't say that they may be, which is a mistake, and packages that take longer
// than budgets.tsv gives them, and the slowest tests, which are measurements, and only told.
package main

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// skips has lines of how many tests may be skipped, or a part of them, for a reason, or "-" for any number, and the reason, as a regular expression.
//
//go:embed skips.tsv
var skips string

// budgets has lines of a folder and the seconds that its tests should take; others have the 10 that "./..." stands for.
//
//go:embed budgets.tsv
var budgets string

func main() {
	r := run{skipped: map[string]map[string]bool{}, output: map[string]string{}}
	for _, name := range os.Args[1:] {
		if err := r.read(name); err != nil {
			fmt.Fprintln(os.Stderr, "verdict:", err)
			os.Exit(2)
		}
	}
	r.tell(os.Stdout)
	unlisted, fewer, err := r.unlisted(skips)
	for _, each := range fewer {
		fmt.Println(each)
	}
	for _, each := range unlisted {
		fmt.Fprintln(os.Stderr, "verdict:", each)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "verdict:", err)
	}
	if err != nil || len(unlisted) > 0 {
		os.Exit(1)
	}
}

// run is what go test did.
type run struct {
	tests, packages []timed
	skipped         map[string]map[string]bool // tests that were skipped, or a part of them, by the reason
	output          map[string]string          // of tests that haven't ended
}

type timed struct {
	name    string
	seconds float64
}

// event is a line of go test -json: see go doc test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

const module = "github.com/slotlease/slotlease/"

func (r *run) read(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	d := json.NewDecoder(bufio.NewReader(f))
	for n := 1; ; n++ {
		var e event
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // A run that was interrupted tells what it can.
			return nil
		case err != nil:
			return fmt.Errorf("%s: event %d: %w", name, n, err)
		}
		r.add(e)
	}
}

func (r *run) add(e event) {
	folder, top := "./"+strings.TrimPrefix(e.Package, module), !strings.Contains(e.Test, "/")
	name := folder + " " + e.Test
	switch e.Action {
	case "output":
		r.output[name] += e.Output
		return
	case "pass", "fail":
		if e.Test == "" {
			r.packages = append(r.packages, timed{folder, e.Elapsed})
		} else if top {
			r.tests = append(r.tests, timed{name, e.Elapsed})
		}
	case "skip":
		if e.Test != "" { // A package without tests is skipped, too.
			why := reason(r.output[name])
			if r.skipped[why] == nil {
				r.skipped[why] = map[string]bool{}
			}
			test, _, _ := strings.Cut(e.Test, "/")
			r.skipped[why][folder+" "+test] = true
		}
	default:
		return
	}
	delete(r.output, name)
}

var said = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: (.*)$`)

// reason is what a test that was skipped said last.
func reason(output string) string {
	all := said.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return "no reason"
	}
	return all[len(all)-1][1]
}

// unlisted says which tests were skipped that may not be, and of which reasons the list allows more than there are.
func (r *run) unlisted(list string) (all, fewer []string, err error) {
	left := maps.Clone(r.skipped)
	for line := range strings.Lines(list) {
		count, pattern, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		most, err := strconv.Atoi(count)
		if count == "-" {
			most, err = math.MaxInt, nil
		}
		if !ok || err != nil {
			return nil, nil, fmt.Errorf("skips.tsv: %q isn't a number, a tab and a regular expression", line)
		}
		re, err := regexp.Compile("(?i)^(?:" + pattern + ")")
		if err != nil {
			return nil, nil, fmt.Errorf("skips.tsv: %w", err)
		}
		these := map[string]bool{}
		for why, tests := range left {
			if re.MatchString(why) {
				maps.Copy(these, tests)
				delete(left, why)
			}
		}
		if len(these) > most {
			all = append(all, fmt.Sprintf("skipped because %q: %d tests, of which skips.tsv allows %d: %s", pattern, len(these), most, some(these)))
		} else if count != "-" && len(these) < most {
			fewer = append(fewer, fmt.Sprintf("skipped because %q: %d tests, and skips.tsv allows %d: lower it", pattern, len(these), most))
		}
	}
	for why, tests := range left {
		all = append(all, fmt.Sprintf("skipped because %q, which skips.tsv hasn't: %s", why, some(tests)))
	}
	slices.Sort(all)
	return all, fewer, nil
}

// some names a few of many.
func some(tests map[string]bool) string {
	names := slices.Sorted(maps.Keys(tests))
	if few := 8; len(names) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}

// tell shows the slowest tests, and the packages that are over their budgets.
func (r *run) tell(w io.Writer) {
	slowest := func(all []timed) []timed {
		slices.SortFunc(all, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
		return all
	}
	_, _ = fmt.Fprintln(w, "the slowest tests:")
	for _, t := range slowest(r.tests)[:min(25, len(r.tests))] {
		_, _ = fmt.Fprintf(w, "%7.1fs  %s\n", t.seconds, t.name)
	}
	most := map[string]float64{}
	for line := range strings.Lines(budgets) {
		var folder string
		var seconds float64
		if n, _ := fmt.Sscan(line, &folder, &seconds); n == 2 {
			most[folder] = seconds
		}
	}
	for _, p := range slowest(r.packages) {
		if budget := cmp.Or(most[p.name], most["./..."]); math.Round(p.seconds) > budget {
			_, _ = fmt.Fprintf(w, "%s took %.0f s, and should take %.0f: what in it could be shorter, or elsewhere?\n", p.name, p.seconds, budget)
		}
	}
}
