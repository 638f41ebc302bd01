package model

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
)

// config is a configuration in which nothing may go wrong.
type config struct {
	name, definitions string
	points            []string // that its search must reach
}

// Points.
var (
	works     = []string{"own append confirmed", "conflict", "work begins on the boundary", "work after work"}
	midSlot   = []string{"work begins in mid-slot"}
	stale     = []string{"stale read"}
	raised    = []string{"start raised"}
	releases  = []string{"release of this slot", "release of a slot to come", "release landed", "void claim released", "start raised"}
	crashes   = []string{"crash", "zombie landed"}
	poisoned  = []string{"poison", "reset landed"}
	resets    = slices.Concat(poisoned, raised)
	foreign   = []string{"foreign record", "foreign reset"}
	lies      = []string{"wrong stamp", "dropped"}
	jumps     = []string{"jump", "jump ends work", "settled by the head", "another head"}
	groups    = []string{"joined", "a group at work"}
	trims     = []string{"trimmed", "landed on a trimmed key", "own claim was too old"}
	extends   = []string{"extended", "extension without a read", "extension with the head read", "confirmed too late"}
	refused   = []string{"extension refused"}
	takeOver  = []string{"take-over"}
	jobs      = []string{"done landed", "done confirmed", "kept off by done"}
	afterNext = []string{"done after the next slot's term"}
	retries   = []string{"another attempt", "no attempt left"}
)

var configs = []config{
	{"two workers", "LAST=10 KEYS=4", slices.Concat(works, midSlot)},
	{"less certain clocks", "E=2 LEN=6 LAST=13 KEYS=3 EXTREMES", slices.Concat(works, midSlot)},
	{"stale reads", "STALE E=0 LEN=3 LAST=8 KEYS=4", slices.Concat(works, stale)},
	{"different intervals", "MIXED LAST=10 KEYS=3", slices.Concat(works, raised)},
	{"releases", "RELEASES E=0 LEN=2 LAST=6 KEYS=4", slices.Concat(works, releases)},
	{"releases, uncertain clocks", "RELEASES EXTREMES LAST=8 KEYS=3", slices.Concat(releases, midSlot)},
	{"crashes", "CRASHES ZOMBIE E=0 LEN=3 LAST=7 KEYS=4", slices.Concat(works, crashes)},
	{"poison", "ROGUE E=0 LEN=2 LAST=6 KEYS=4", slices.Concat(works, resets)},
	{"a foreign record", "ROGUE VALID E=0 LEN=2 LAST=6 KEYS=4", slices.Concat(works, resets, foreign)},
	{"a foreign record, uncertain clocks", "ROGUE VALID EXTREMES LEN=3 LAST=8 KEYS=3", slices.Concat(resets, foreign)},
	{"a wrong stamp", "WRONG=1 WRONG_BY=2 E=0 LEN=2 LAST=6 KEYS=4", slices.Concat(works, midSlot, lies)},
	{"a jump of the store's clock", "JUMP=2 LATE_NEWS E=0 LEN=2 LAST=5 KEYS=3", slices.Concat(works, midSlot, jumps)},
	{"a token ahead", "AHEAD=2 LAST=10 KEYS=4", works},
	{"a token ahead and poison", "AHEAD=2 ROGUE E=0 LEN=2 LAST=6 KEYS=4", slices.Concat(works, resets)},
	{"three workers", "N=3 E=0 LEN=2 LAST=5 KEYS=3", works},
	{"a group and another", "GROUP N=3 E=0 LEN=2 LAST=4 KEYS=3", slices.Concat(works, groups)},
	{"a group that stops", "GROUP RELEASES E=0 LEN=2 LAST=6 KEYS=4", slices.Concat(works, groups)},
	{"trimming", "TRIM E=0 AGE=1 RETENTION=2 LEN=2 LAST=6 KEYS=4", slices.Concat(works, trims)},
	{"trimming, uncertain clocks", "TRIM EXTREMES AGE=2 RETENTION=3 LEN=3 LAST=9 KEYS=4", slices.Concat(works, trims)},
	{"trimming and poison", "TRIM ROGUE E=0 AGE=1 RETENTION=2 LEN=2 LAST=5 KEYS=3", slices.Concat(works, resets, trims)},

	{"extensions", "EXTENDS E=0 LEN=2 LAST=7 KEYS=4", slices.Concat(works, extends, refused)},
	{"extensions, uncertain clocks", "EXTENDS EXTREMES LAST=11 KEYS=3", slices.Concat(works, extends, refused, midSlot)},
	{"extensions, different intervals", "EXTENDS MIXED LAST=10 KEYS=3", slices.Concat(works, extends, refused, raised)},
	{"extensions and stale reads", "EXTENDS STALE E=0 LEN=2 LAST=6 KEYS=3", slices.Concat(works, extends, refused, stale)},
	{"extensions and releases", "EXTENDS RELEASES E=0 LEN=2 LAST=5 KEYS=4", slices.Concat(works, extends, releases)},
	{"extensions and crashes", "EXTENDS CRASHES ZOMBIE E=0 LEN=2 LAST=5 KEYS=4", slices.Concat(works, extends, refused, crashes)},
	{"extensions and poison", "EXTENDS ROGUE E=0 LEN=2 LAST=6 KEYS=4", slices.Concat(works, extends, refused, resets)},
	{"extensions and trimming", "EXTENDS TRIM E=0 AGE=1 RETENTION=2 LEN=2 LAST=5 KEYS=4", slices.Concat(works, extends, refused, trims)},
	{"windows in slots", "EXTENDS WINDOW=2 E=0 LEN=4 LAST=10 KEYS=4", slices.Concat(works, extends, refused, takeOver)},
	{"windows in slots, uncertain clocks", "EXTENDS WINDOW=3 LEN=6 LAST=12 KEYS=3", slices.Concat(midSlot, extends, refused, takeOver)},
	{"once per slot", "ONCE E=0 LEN=2 LAST=6 KEYS=4", slices.Concat(works, jobs, afterNext)},
	{"once per slot, uncertain clocks", "ONCE EXTREMES LAST=10 KEYS=4", slices.Concat(works, jobs, afterNext)},
	{"once per slot, attempts", "ONCE WINDOW=1 E=0 LEN=3 LAST=6 KEYS=4", slices.Concat(midSlot, jobs, retries, takeOver)},
	{"once per slot and releases", "ONCE RELEASES E=0 LEN=2 LAST=5 KEYS=4", slices.Concat(works, jobs, afterNext, retries, releases)},
	{"once per slot and crashes", "ONCE CRASHES ZOMBIE E=0 LEN=2 LAST=5 KEYS=3", slices.Concat(works, jobs, afterNext, crashes)},
	{"once per slot and poison", "ONCE ROGUE E=0 LEN=2 LAST=6 KEYS=3", slices.Concat(works, jobs, afterNext, resets)},
	{"once per slot, extensions and crashes", "ONCE EXTENDS CRASHES WINDOW=2 E=0 LEN=4 LAST=9 KEYS=4", slices.Concat(works, jobs, afterNext, extends, takeOver)},
	{"once per slot and trimming", "ONCE TRIM E=0 AGE=0 RETENTION=1 LEN=2 LAST=6 KEYS=3", slices.Concat(works, jobs, afterNext, trims)},
	{"once per slot, trimming, one worker after another", "N=1 ONCE TRIM RELEASES E=0 AGE=1 RETENTION=2 LEN=3 LAST=6 KEYS=4", slices.Concat(midSlot, jobs, retries)},
}

// broken is a configuration with one rule broken (or one assumption), in which one
// assertion must fail, the others not being checked.
type broken struct {
	rule, base, change string
	only, want         string
}

var variants = []broken{
	{"time is a point", "two workers", "BREAK_UNCERTAINTY", "OVERLAP", "overlap"},
	{"work before the window has surely begun", "two workers", "BREAK_BEGIN", "OVERLAP", "overlap"},
	{"work till the window has perhaps ended", "two workers", "BREAK_END", "OVERLAP", "overlap"},
	{"a grant starts before the head ends", "two workers", "BREAK_DISJOINT", "OVERLAP", "overlap"},
	{"a grant jumps over the living", "two workers", "BREAK_GAP", "GAP", "no_gap"},
	{"unknown is taken for won", "two workers", "BREAK_READ_BACK", "OVERLAP", "overlap"},
	{"read back by instance id", "two workers", "BREAK_CLAIM_ID", "OVERLAP", "overlap"},
	{"a token is the start alone", "a token ahead", "BREAK_TOKEN", "TOKENS", "token_grows"},
	{"another worker's term is released", "releases", "BREAK_RELEASE_OWN", "OVERLAP", "overlap"},
	{"a release frees more than the head's term", "releases", "BREAK_RELEASE_REST", "OVERLAP", "overlap"},
	{"a release before the work has stopped", "releases", "BREAK_STOP_FIRST", "OVERLAP", "overlap"},
	{"the same, at the release itself", "releases", "BREAK_STOP_FIRST", "FREES", "frees_nobody"},
	{"work under a term that a release was sent for", "releases", "BREAK_NEVER_AGAIN", "OVERLAP", "overlap"},
	{"a member releases its group's term", "a group that stops", "BREAK_GROUP_RELEASE", "FREES", "frees_nobody"},
	{"poison is free", "poison", "BREAK_POISON", "OVERLAP", "overlap"},
	{"a reset frees the term below the poison", "poison", "BREAK_RESET_END", "OVERLAP", "overlap"},
	{"what is valid alone is obeyed", "a foreign record", "BREAK_CONTRADICTS", "OVERLAP", "overlap"},
	{"a reset above what can be obeyed is obeyed", "a foreign record", "BREAK_REPLAY", "OVERLAP", "overlap"},
	{"one wrong stamp is believed", "a wrong stamp", "BREAK_CONFIRM", "OVERLAP", "overlap"},
	{"another clock is believed at once", "a jump of the store's clock", "BREAK_SETTLED", "OVERLAP", "overlap"},
	{"a jump is settled after a tick", "a jump of the store's clock", "PATIENCE=1", "OVERLAP", "overlap"},
	{"a jump is settled although the head is another", "a jump of the store's clock", "BREAK_UNCHANGED", "OVERLAP", "overlap"},
	{"an append lands when a jump is settled that its worker doesn't know of", "a jump of the store's clock", "ANY_NEWS", "OVERLAP", "overlap"},
	{"a reset's token is the time alone", "a token ahead and poison", "BREAK_RESET_TOKEN", "TOKENS", "token_grows"},
	{"work under a claim of any age", "trimming", "BREAK_AGE", "OVERLAP", "overlap"},
	{"a retry fixes the claim anew", "trimming", "BREAK_FIXED", "OVERLAP", "overlap"},
	{"the head is trimmed", "trimming", "BREAK_TRIM_HEAD", "STAYS", "may_go"},
	{"the same, and two work", "trimming", "BREAK_TRIM_HEAD", "OVERLAP", "overlap"},
	{"a record is trimmed by its own age", "trimming", "BREAK_TRIM_OWN_AGE", "STAYS", "may_go"},
	{"the same, and two work", "trimming", "BREAK_TRIM_OWN_AGE", "OVERLAP", "overlap"},
	{"the retention is no longer than a claim's age", "trimming", "RETENTION=1", "OVERLAP", "overlap"},
	{"the retention is a tick", "trimming", "AGE=2 RETENTION=1 LAST=7", "OVERLAP", "overlap"},
	{"a record without ReadAt justifies trimming", "trimming and poison", "BREAK_READ_AT_MISSING", "OVERLAP", "overlap"},
	{"ReadAt is the earliest it may be", "trimming, uncertain clocks", "BREAK_READ_AT", "OVERLAP", "overlap"},
	{"a read is older than the retention", "trimming", "STALE", "OVERLAP", "overlap"},

	{"a term that was left is extended", "windows in slots", "BREAK_LEFT", "TOKENS", "token_grows"},
	{"work resumes when an extension is confirmed too late", "windows in slots", "BREAK_LATE", "TOKENS", "token_grows"},
	{"an extension starts where one's own window ended", "windows in slots", "BREAK_EXTEND_START", "OVERLAP", "overlap"},
	{"a term is recognized by the instance id", "windows in slots", "BREAK_EXTEND_CLAIM", "OVERLAP", "overlap"},
	{"the next slot is claimed over the living", "windows in slots", "BREAK_GAP", "GAP", "no_gap"},
	{"a done slot is claimed", "once per slot and releases", "BREAK_DONE_OBEYED", "AGAIN", "not_again"},
	{"a done record takes the term", "once per slot and releases", "BREAK_DONE_TERM", "FREES", "frees_nobody"},
	{"later records don't say which slots are done", "once per slot and releases", "BREAK_DONE_COPIED", "AGAIN", "not_again"},
	{"done slots are looked up below the head", "once per slot, trimming, one worker after another", "BREAK_DONE_BELOW", "AGAIN", "not_again"},
	{"a done record is one's own by its claim id", "once per slot", "BREAK_DONE_MINE", "RECORDED", "is_recorded"},
	{"a done record is believed at any age", "once per slot and trimming", "BREAK_DONE_AGE", "RECORDED", "is_recorded"},
	{"workers count their own attempts", "once per slot, attempts", "BREAK_ATTEMPTS", "TRIES", "few_enough"},
}

// tally adds up what searches that run side by side came to.
type tally struct {
	mu             sync.Mutex
	holds, refuted int
	states, most   float64
	took           time.Duration
}

// prove checks configurations, refutes variants of them, and saves the figures.
func prove(t *testing.T, name, command string, configs []config, variants []broken, e effort) {
	t.Helper()
	needSpin(t)
	var s tally
	s.check(t, configs, e)
	s.refute(t, variants, configs)
	s.save(t, name, command)
}

// check searches configurations in which nothing may go wrong, side by side.
func (s *tally) check(t *testing.T, configs []config, e effort) {
	t.Run("holds", func(t *testing.T) {
		for _, c := range configs {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				flags := define(c.definitions)
				f := search(t, flags, e)
				if against := f.holds(c.points); against != nil {
					t.Fatalf("%v: %s\ndoc.go says how to read a counterexample", flags, strings.Join(against, "; "))
				}
				t.Logf("%11.0f states, %5.0f MB, %6.1f s  %s", f.states, f.megabyte, f.took.Seconds(), c.definitions)
				s.mu.Lock()
				defer s.mu.Unlock()
				s.holds++
				s.states += f.states
				s.most = max(s.most, f.megabyte)
				s.took += f.took
			})
		}
	})
}

// refute searches configurations with something broken, until that is found.
func (s *tally) refute(t *testing.T, variants []broken, configs []config) {
	t.Run("broken", func(t *testing.T) {
		for _, v := range variants {
			t.Run(v.rule, func(t *testing.T) {
				t.Parallel()
				base := slices.IndexFunc(configs, func(c config) bool { return c.name == v.base })
				flags := define(configs[base].definitions, v.change, "ONLY="+v.only)
				f := search(t, flags, brief)
				if !f.refuted(v.want) {
					t.Fatalf("%v: %d errors, violated %q, want %q", flags, f.errors, f.violated, v.want)
				}
				t.Logf("%s fails, after %.0f states  %s: %s", v.want, f.states, v.base, v.change)
				s.mu.Lock()
				defer s.mu.Unlock()
				s.refuted++ // Its states are not all there are.
			})
		}
	})
}

func (s *tally) save(t *testing.T, name, command string) {
	t.Helper()
	if t.Failed() {
		return
	}
	p := figures.Proof{Name: name, Command: command, Figures: []figures.Figure{
		{What: "configurations in which nothing can go wrong", Value: fmt.Sprint(s.holds)},
		{What: "states, searched exhaustively", Value: fmt.Sprintf("%.1f million", s.states/1e6)},
		{What: "broken variants refuted", Value: fmt.Sprint(s.refuted)},
	}}
	for _, f := range p.Figures {
		t.Logf("%s: %s", f.What, f.Value)
	}
	t.Logf("%.0f MB at most, %v of searching", s.most, s.took.Round(time.Second))
	if err := figures.Save(p); err != nil {
		t.Error(err)
	}
}

func TestTheModelHoldsAndEachBrokenRuleIsFound(t *testing.T) {
	if os.Getenv("SLOTLEASE_MODEL") == "" {
		t.Skip("takes a minute: set SLOTLEASE_MODEL=quick")
	}
	prove(t, "model", "SLOTLEASE_MODEL=quick go test -v ./internal/model", configs, variants, quick)
}

func TestEveryRuleOfTheModelIsBrokenOnce(t *testing.T) {
	files, err := filepath.Glob("*.pml")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob = %v, %v, want the model", files, err)
	}
	all := slices.Concat(variants, longVariants)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range regexp.MustCompile(`BREAK_[A-Z_]+`).FindAllString(string(text), -1) {
			if !slices.ContainsFunc(all, func(v broken) bool {
				return slices.Contains(strings.Fields(v.change), rule)
			}) {
				t.Errorf("%s: %s is broken by no variant", file, rule)
			}
		}
	}
}
