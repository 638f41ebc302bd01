package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/internal/suites"
)

func TestTheLastLineOfTheFuzzerCounts(t *testing.T) {
	for name, c := range map[string]struct {
		out  string
		want result
	}{
		"with coverage": {
			"fuzz: elapsed: 0s, gathering baseline coverage: 0/8 completed\nfuzz: elapsed: 3s, execs: 8298 (2765/sec), new interesting: 111 (total: 119)\n" +
				"fuzz: elapsed: 1m3s, execs: 9771 (4064/sec), new interesting: 114 (total: 122)\nPASS\n",
			result{execs: 9771, elapsed: 63 * time.Second},
		},
		"without": {
			"warning: the test binary was not built with coverage\nfuzz: elapsed: 8s, execs: 401734 (51728/sec)\nPASS\n",
			result{execs: 401734, elapsed: 8 * time.Second},
		},
		"nothing done": {"testing: warning: no fuzz tests to fuzz\n", result{}},
		"time out while minimizing": {
			"fuzz: elapsed: 8s, execs: 5 (1/sec), new interesting: 0 (total: 1)\n--- FAIL: FuzzX (8.00s)\n    context deadline exceeded\nFAIL\n",
			result{execs: 5, elapsed: 8 * time.Second, ranOut: true},
		},
		"a failure that mentions the same": {
			"fuzz: elapsed: 8s, execs: 5 (1/sec)\n--- FAIL: FuzzX (8.00s)\n    x_test.go:1: context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzX/1\nFAIL\n",
			result{execs: 5, elapsed: 8 * time.Second},
		},
	} {
		if diff := cmp.Diff(c.want, read(target{}, c.out), cmp.AllowUnexported(result{}, target{})); diff != "" {
			t.Errorf("read() of %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheSummaryIsSavedAsFigures(t *testing.T) {
	s := sum([]result{{execs: 10_000_001}, {execs: 10_000_000, failure: "x"}, {execs: 20_000_000}})
	all, err := parseOptions([]string{"-n", "10000000"})
	if err != nil {
		t.Fatal(err)
	}
	got := s.proof(all)
	want := figures.Proof{
		Name: "fuzzing", Command: "go run ./internal/figures/fuzz -n 10000000",
		Figures: []figures.Figure{
			{What: "targets", Value: "3"},
			{What: "executions", Value: "40,000,001"},
			{What: "of each at least", Value: "10,000,000"},
			{What: "targets that failed", Value: "1"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("proof() (-want +got):\n%s", diff)
	}
	part, err := parseOptions([]string{"-n", "30s", "-run", "Decode$", "./store/...", "./slots"})
	if err != nil {
		t.Fatal(err)
	}
	got = s.proof(part)
	if want := "go run ./internal/figures/fuzz -n 30s -run 'Decode$' ./store/... ./slots"; got.Name != "fuzzing-Decode-store-slots" || got.Command != want {
		t.Errorf("proof() of a part = %q, %q, want fuzzing-Decode-store-slots, %q", got.Name, got.Command, want)
	}
}

func TestOptionsTakeACountOrATime(t *testing.T) {
	for n, want := range map[string]string{"10000000": "10000000x", "30s": "30s", "0": "", "-1": "", "many": "", "0s": "", "": ""} {
		o, err := parseOptions([]string{"-n", n})
		if o.n != want || (err == nil) != (want != "") {
			t.Errorf("parseOptions(-n %q) = %q, %v, want %q", n, o.n, err, want)
		}
	}
	if o, err := parseOptions([]string{"-run", "("}); err == nil {
		t.Errorf("parseOptions(-run '(') = %+v, want an error", o)
	}
}

func TestTargetsAreFoundInTheirFiles(t *testing.T) {
	found, err := find(t.Context(), options{only: regexp.MustCompile("store"), packages: []string{"github.com/slotlease/slotlease/store", "github.com/slotlease/slotlease/slots"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range found {
		names = append(names, f.String())
	}
	if want := []string{"store.FuzzWorkerType", "store.FuzzRecord", "store.FuzzOrders", "store.FuzzOutcome"}; !slices.Equal(names, want) {
		t.Errorf("find(store) = %q, want %q", names, want)
	}
}

func TestATargetIsBuiltAndCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a test binary")
	}
	suites.Prove(t, "it builds a test binary")
	var out strings.Builder
	dir := t.TempDir()
	t.Setenv(figures.Variable, dir)
	if err := run(t.Context(), []string{"-n", "200", "-run", "FuzzWorkerType", "github.com/slotlease/slotlease/store"}, &out); err != nil {
		t.Fatalf("run() = %v\n%s", err, out.String())
	}
	if text := out.String(); !strings.Contains(text, "store.FuzzWorkerType") || !strings.Contains(text, "ok\n1 targets") {
		t.Errorf("run() wrote\n%s\nwant one target that is ok", text)
	}
}
