//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/store"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == enterCommand {
		fmt.Fprintln(os.Stderr, enter(world(os.Args[2]), os.Args[3:]))
		os.Exit(1)
	}
	parallel.Waiting() // for processes
	os.Exit(m.Run())
}

// release is the record of a release of the token n at a time after the start of its window.
func release(seq, n int64, after time.Duration) store.Record {
	r := grant(seq, n, "alpha-0")
	r.Kind, r.WindowStart = store.KindRelease, r.WindowStart.Add(after)
	r.WindowEnd = r.WindowStart // Nothing is left.
	return r
}

func TestNothingMayWorkAfterItsWindowOrRelease(t *testing.T) {
	as := func(role string, lines []line) []line {
		lines = slices.Clone(lines)
		for i := range lines {
			lines[i].role = role
		}
		return lines
	}
	granted, released := []store.Record{grant(1, 1, "alpha-0")}, []store.Record{grant(1, 1, "alpha-0"), release(2, 1, 500*ms)}
	command := beats(1000*ms, 1300*ms, 10, 1)
	for name, test := range map[string]struct {
		lines   []line
		records []store.Record
		stalls  []stall
		wrong   string
	}{
		"inside":                             {byTime(command, as("daemon", beats(1010*ms, 1500*ms, 11, 1))), granted, nil, ""},
		"after the window":                   {byTime(command, as("daemon", beats(1010*ms, 2010*ms, 11, 1))), granted, nil, "daemon of alpha-0 (pid 11"},
		"one that begins after the window":   {byTime(command, as("hop", beats(2010*ms, 2020*ms, 11, 1))), granted, nil, "hop of alpha-0 (pid 11"},
		"after it on a machine that stood":   {byTime(command, as("daemon", beats(1010*ms, 2010*ms, 11, 1))), granted, []stall{{1990 * ms, 50 * ms}}, ""},
		"after it by more than that":         {byTime(command, as("daemon", beats(1010*ms, 2100*ms, 11, 1))), granted, []stall{{1990 * ms, 50 * ms}}, "after the window"},
		"released when nothing works":        {byTime(command, as("daemon", beats(1010*ms, 1490*ms, 11, 1))), released, nil, ""},
		"released when one works":            {byTime(command, as("daemon", beats(1010*ms, 1520*ms, 11, 1))), released, nil, "the lease was released"},
		"the same on a machine that stood":   {byTime(command, as("daemon", beats(1010*ms, 1520*ms, 11, 1))), released, []stall{{1500 * ms, 50 * ms}}, "the lease was released"},
		"released when the command works":    {beats(1000*ms, 1520*ms, 10, 1), released, nil, "the lease was released"},
		"a daemon when the next has begun":   {byTime(command, as("daemon", beats(1010*ms, 2010*ms, 11, 1)), beats(2000*ms, 2100*ms, 20, 2)), append(granted, grant(2, 2, "alpha-0")), nil, "overlap"},
		"a token that was granted to nobody": {beats(1000*ms, 1100*ms, 10, 2), granted, nil, "was not granted its token"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &escapeVerdict{}
			e := escaped{flight: flight{kinds: []string{"daemon"}, world: asIs, how: endLease}}
			v.read(e, evidence{of: workerType{name: "alpha"}, zero: store.FromMillis(0), tolerance: ms, records: test.records, chronicle: chronicleOf(test.lines)}, &gauge{stalls: test.stalls})
			text := strings.Join(v.wrong, "\n")
			if v.failed() != (test.wrong != "") || !strings.Contains(text, test.wrong) {
				t.Errorf("read() says %q, want %q", v.wrong, test.wrong)
			}
		})
	}
}

func TestTriesThatShowTooLittleFail(t *testing.T) {
	plan := planEscapes(rand.New(rand.NewPCG(1, 2)), 60, []world{asIs, noCgroups, asNobody})
	type combination struct {
		world
		how kind
	}
	combinations, kinds := map[combination]int{}, map[string]int{}
	for _, f := range plan {
		combinations[combination{f.world, f.how}]++
		for _, kind := range f.kinds {
			kinds[kind]++
		}
	}
	if len(combinations) != 15 || len(kinds) != len(kindsOfEscape) {
		t.Errorf("planned: %v, %v, want all ways in all worlds, and all kinds", combinations, kinds)
	}
	for name, test := range map[string]struct {
		tries int
		kinds map[string]int
		void  []string
		wrong string
	}{
		"all":               {60, kinds, nil, ""},
		"without a kind":    {60, map[string]int{"daemon": 5}, nil, "no process of the kind"},
		"too few":           {50, kinds, []string{"late"}, "50 of 60 tries show something"},
		"some show nothing": {54, kinds, []string{"late"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := &escapeVerdict{tries: test.tries, processes: test.kinds, void: test.void}
			v.judgeExtent(plan)
			if text := strings.Join(v.wrong, "\n"); v.failed() != (test.wrong != "") || !strings.Contains(text, test.wrong) {
				t.Errorf("judgeExtent() says %q, want %q", v.wrong, test.wrong)
			}
		})
	}
}

// A guard that is broken on purpose is found out by the processes that it leaves.
func TestABrokenGuardIsCaught(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil && os.Getenv("REQUIRE_ESCAPES") != "1" {
		t.Skip(err)
	}
	worlds, err := worldsHere()
	if err != nil {
		t.Fatal(err)
	}
	in := worlds[min(1, len(worlds)-1)] // without cgroups, which kill all at once
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := killAll(); err != nil {
			t.Error(err)
		}
		reapAll()
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	})
	type edit struct{ file, old, broken string }
	const look = "left := until(func() look {\n"
	daemon, thread := []string{"daemon"}, []string{"thread"}
	for name, test := range map[string]struct {
		edits   []edit
		flights []flight
		wrong   []string // of each flight
	}{
		"nothing waits for proof": {
			[]edit{{"family_linux.go", look, look + "return look{}\n"}, {"rescue_linux.go", look, look + "return look{}\n"}},
			[]flight{{n: 0, world: in, how: endLeasectl, kinds: daemon}, {n: 1, world: in, how: killGuard, kinds: daemon}, {n: 2, world: in, how: endLease, kinds: daemon}},
			[]string{"daemon of escape", "daemon of escape", "daemon of escape"},
		},
		"it goes by the main thread": {
			[]edit{
				{"tree_linux.go", "p.exited() && p.threads <= 1", "p.exited()"},
				{"tree_linux.go", "walk(root, func(p process) {\n", "walk(root, func(p process) {\nif p.dead() {\nl.add(p, nil)\nreturn\n}\n"},
			},
			[]flight{{n: 0, world: in, how: endLease, kinds: thread}, {n: 1, world: in, how: endLeasectl, kinds: thread}, {n: 2, world: in, how: endLeasectl, kinds: daemon}},
			[]string{"thread of escape", "thread of escape", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "slotlease-chaos-") //nolint:usetesting // Another user must be able to look into it.
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			h := &harness{settings: settings{scenario: "escapes", store: "sqlite", seed: 1}, dir: dir, program: filepath.Join(dir, "leasectl")}
			h.backend = &sqliteBackend{dir: dir}
			replaced := map[string]string{}
			for _, e := range test.edits {
				path, err := filepath.Abs(filepath.Join("../../cmd/leasectl/internal/guard", e.file))
				if err != nil {
					t.Fatal(err)
				}
				from := path
				if replaced[path] != "" {
					from = replaced[path]
				}
				source, err := os.ReadFile(from)
				if err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(string(source), e.old); n != 1 {
					t.Fatalf("%s has %q %d times, want once: break it in another way", e.file, e.old, n)
				}
				replaced[path] = filepath.Join(dir, e.file)
				if err := os.WriteFile(replaced[path], []byte(strings.Replace(string(source), e.old, e.broken, 1)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			overlay, err := json.Marshal(map[string]any{"Replace": replaced})
			h.overlay = filepath.Join(dir, "overlay.json")
			if err != nil || os.WriteFile(h.overlay, overlay, 0o600) != nil {
				t.Fatal("write the overlay: ", err)
			}
			if h.self, err = os.Executable(); err != nil {
				t.Fatal(err)
			}
			if err := h.build(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := h.buildEscapes(t.Context()); err != nil {
				t.Fatal(err)
			}
			v, err := h.escapes(t.Context(), test.flights)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range test.flights {
				text := strings.Join(slices.DeleteFunc(slices.Clone(v.wrong), func(text string) bool { return !strings.HasPrefix(text, f.String()) }), "\n")
				if (text != "") != (test.wrong[i] != "") || !strings.Contains(text, test.wrong[i]) {
					t.Errorf("the verdict of %v is %q, want %q; in all: %q, %q", f, text, test.wrong[i], v.wrong, v.notes)
				}
			}
		})
	}
}
