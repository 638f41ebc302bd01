package workerlease_test

import (
	"bufio"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// variant is the protocol with one rule broken, in a way that somebody might
// think is good enough.
type variant struct {
	name    string
	rule    string                 // which fields of machine.Rules are broken, or what else is
	regime  regime                 // a kind of run in which it shows
	instead any                    // the rule as it is broken, if it is one alone
	broken  func(r *machine.Rules) // breaks what else is broken
	around  around
	as      string                     // what the world says of it, if it may say more
	audit   func(*sim.Result) []string // what else is wrong in the end, if the world doesn't mind
	seldom  bool                       // that or, if as is given, something else is wrong in some worlds with no rule broken, too
}

// around changes what an engine works with.
type around func(store.Ledger, workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions)

// variants are all of them. The comment on each describes a history in which it lets
// two holders work at once, a token not grow, a record go that is needed, a worker that
// lives lose its slot or its turn, a slot pass unused, or user code be called wrongly.
var variants = slices.Concat(timeVariants, stampVariants, loopVariants, claimVariants, orderVariants, costVariants, returnVariants, upkeepVariants, poisonVariants, extendVariants, doneVariants, faultVariants, doubtVariants, unfitVariants, rosterVariants, leverVariants, saidVariants, lostVariants, finishVariants, triggerVariants)

var standard = machine.Standard

// trimming shows soon what is trimmed.
func trimming(r *machine.Rules) { r.TrimEvery = 1 }

// whole says that the variant breaks no rule of the machine.
func (v variant) whole() bool { return v.broken == nil && v.instead == nil }

// rules are the machine's, broken.
func (v variant) rules() machine.Rules {
	rules := machine.Standard
	if v.broken != nil {
		v.broken(&rules)
	}
	if v.instead != nil {
		name, _, _ := strings.Cut(v.rule, ":")
		reflect.ValueOf(&rules).Elem().FieldByName(name).Set(reflect.ValueOf(v.instead))
	}
	return rules
}

// run runs a simulation in which all workers follow the variant, and returns what
// was wrong. A length of 0 is that of the regime.
func (v variant) run(t *testing.T, seed int64, length time.Duration) []string {
	t.Helper()
	rules := v.rules()
	o := v.regime(seed)
	if length > 0 {
		o.Length = length
	}
	if v.around != nil {
		o.Desk = func(l store.Ledger) store.Ledger {
			l, _ = v.around(l, workerlease.ClientOptions{})
			return l
		}
	}
	create := o.Client
	if create == nil {
		create = workerlease.NewClient
	}
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		if v.around != nil {
			l, c = v.around(l, c)
		}
		client := create(l, c)
		workerlease.SetRules(client, rules)
		return client
	}
	r := sim.Run(t, o)
	wrong := r.Violations
	overlaps := r.Overlaps
	if o.Faults.Losses > 0 {
		overlaps = nil // Workers that could know of nothing overlap with no rule broken, too.
	}
	for _, x := range overlaps {
		wrong = append(wrong, fmt.Sprintf("at %v: %s works, and %s works", x.At, x.Newer, x.Older))
	}
	if v.audit != nil {
		wrong = append(wrong, v.audit(r)...)
	}
	return wrong
}

// A simulation that finds nothing proves something only if it finds what is
// there. So each rule is broken in turn: all must be noticed, and soon.
func TestSimulationCatchesEveryBrokenVariant(t *testing.T) {
	if !*search {
		suites.Prove(t, "it simulates for half a minute; the gate does so in a step of its own")
	}
	if testing.Short() || race.Enabled {
		t.Skip("takes a minute under the race detector")
	}
	t.Parallel()
	known := readCatches(t)
	var mu sync.Mutex
	caught := map[string]catch{}
	t.Run("variants", func(t *testing.T) {
		for _, v := range variants {
			t.Run(v.name, func(t *testing.T) {
				t.Parallel()
				c, ok := known[v.name]
				if *search || !ok || !v.caught(t, &c) {
					c = v.search(t)
				}
				mu.Lock()
				defer mu.Unlock()
				caught[v.name] = c
			})
		}
	})
	if t.Failed() {
		return
	}
	if *search {
		maps.Copy(known, caught) // -run may have chosen some variants
		writeCatches(t, known)
	}
	slowest := int64(0)
	var table strings.Builder
	for _, v := range variants {
		c := caught[v.name]
		slowest = max(slowest, c.seed+1)
		fmt.Fprintf(&table, "%-24s %-54s %5d  %.120s\n", v.rule, v.name, c.seed+1, c.wrong)
	}
	t.Logf("rule, variant, seeds until it was caught, and by what:\n%s", table.String())
	if err := figures.Save(figures.Proof{
		Name: "variants", Command: "make variants",
		Figures: []figures.Figure{
			{What: "broken variants of the protocol, all caught by the simulation", Value: fmt.Sprint(len(caught))},
			{What: "seeds that the best hidden of them took", Value: fmt.Sprint(slowest)},
		},
	}); err != nil {
		t.Error(err)
	}
}

// unbroken are the rules that no variant has to break, and why.
var unbroken = map[string]string{
	"TrimEvery": "it says how often records are trimmed, not which of them may go",
}

// fields are the fields of machine.Rules that the variant changes.
func (v variant) fields() (changed []string) {
	whole, broken := reflect.ValueOf(machine.Standard), reflect.ValueOf(v.rules())
	for _, f := range allRules() {
		a, b := whole.FieldByIndex(f.Index), broken.FieldByIndex(f.Index)
		if a.Kind() == reflect.Func && a.Pointer() != b.Pointer() || a.Kind() != reflect.Func && !a.Equal(b) {
			changed = append(changed, f.Name)
		}
	}
	return changed
}

// allRules are the fields of machine.Rules, with those of the ledger's.
func allRules() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[machine.Rules]()), func(f reflect.StructField) bool { return f.Anonymous })
}

func TestEveryRuleIsBrokenByAVariantThatIsNamedForIt(t *testing.T) {
	broken := map[string]bool{}
	for _, v := range variants {
		if v.whole() {
			continue
		}
		changed := v.fields()
		names, _, _ := strings.Cut(v.rule, ":")
		for _, name := range strings.Split(names, ", ") {
			if !slices.Contains(changed, name) {
				t.Errorf("%q is said to break %s, and changes %v", v.name, name, changed)
			}
			broken[name] = true
		}
	}
	rules := reflect.TypeFor[machine.Rules]()
	for _, f := range allRules() {
		switch name := f.Name; {
		case broken[name] && unbroken[name] != "":
			t.Errorf("%s is broken by a variant, and need not be listed as unbroken", name)
		case !broken[name] && unbroken[name] == "":
			t.Errorf("%s is broken by no variant", name)
		}
	}
	for name := range unbroken {
		if _, ok := rules.FieldByName(name); !ok {
			t.Errorf("%s is no rule", name)
		}
	}
}

var search = flag.Bool("variants.search", false, "search all seeds for those that catch the broken variants, and write them to testdata/variants.txt")

// mostSeeds is how many seeds a variant may escape.
const mostSeeds = 1000

// catch is how the simulation noticed a variant. The shortest run that does is kept in
// testdata/variants.txt, so that no test has to search for it again.
type catch struct {
	seed   int64
	length time.Duration // of a run that is long enough, 0 if all of it is
	wrong  string
}

// caught reports whether the variant is noticed in a run, and notes by what. It must be
// the broken rule that was noticed: without it, nothing is wrong.
func (v variant) caught(t *testing.T, c *catch) bool {
	t.Helper()
	wrong := v.run(t, c.seed, c.length)
	i := slices.IndexFunc(wrong, func(w string) bool { return strings.Contains(w, v.as) })
	if i < 0 {
		return false
	}
	c.wrong = wrong[i]
	if !v.whole() || v.around != nil {
		whole := variant{regime: v.regime, audit: v.audit}
		for _, wrong := range whole.run(t, c.seed, c.length) {
			if v.seldom && (v.as == "" || !strings.Contains(wrong, v.as)) {
				return false
			}
			t.Errorf("seed %d, with no rule broken: %s", c.seed, wrong)
		}
	}
	return true
}

// search finds the first seed in which the variant is noticed, and how long its run must
// be. A shorter run is the beginning of a longer one.
func (v variant) search(t *testing.T) catch {
	t.Helper()
	for seed := range int64(mostSeeds) {
		c := catch{seed: seed}
		if !v.caught(t, &c) {
			continue
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(c.wrong, "at "), ": ")
		if at, err := time.ParseDuration(text); err == nil {
			short := catch{seed: seed, length: at.Truncate(time.Minute) + 2*time.Minute}
			if short.length < v.regime(seed).Length && v.caught(t, &short) {
				return short
			}
		}
		return c
	}
	t.Errorf("%s was not noticed in %d seeds", v.rule, mostSeeds)
	return catch{}
}

var catchesFile = filepath.Join("testdata", "variants.txt")

// readCatches reads how each variant was caught when all seeds were searched.
func readCatches(t *testing.T) map[string]catch {
	t.Helper()
	f, err := os.Open(catchesFile)
	must(t, err)
	defer f.Close()
	known := map[string]catch{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c catch
		var length string
		if _, err := fmt.Sscan(lines.Text(), &c.seed, &length); err != nil {
			t.Fatalf("%s: %q: %v", catchesFile, lines.Text(), err)
		}
		if c.length, err = time.ParseDuration(length); err != nil {
			t.Fatalf("%s: %q: %v", catchesFile, lines.Text(), err)
		}
		_, name, _ := strings.Cut(lines.Text(), "  ")
		if name = strings.TrimSpace(name); !slices.ContainsFunc(variants, func(v variant) bool { return v.name == name }) && !*search {
			t.Errorf("%s: there is no variant %q: run make variants", catchesFile, name)
		}
		known[name] = c
	}
	return known
}

func writeCatches(t *testing.T, caught map[string]catch) {
	t.Helper()
	var b strings.Builder
	for _, v := range variants {
		c := caught[v.name]
		fmt.Fprintf(&b, "%d %v  %s\n", c.seed, c.length, v.name)
	}
	must(t, os.WriteFile(catchesFile, []byte(b.String()), 0o644))
}
