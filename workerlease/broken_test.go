package workerlease_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/internal/race"
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
	seldom  bool                       // that happens with no rule broken, too, if much more seldom
}

// around changes what an engine works with.
type around func(store.Ledger, workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions)

// variants are all of them. The comment on each describes a history in which it lets
// two holders work at once, a token not grow, a record go that is needed, a worker that
// lives lose its slot or its turn, a slot pass unused, or user code be called wrongly.
var variants = slices.Concat(timeVariants, stampVariants, loopVariants, claimVariants, orderVariants, costVariants, returnVariants, upkeepVariants, poisonVariants, extendVariants, doneVariants, faultVariants, doubtVariants, unfitVariants, rosterVariants, leverVariants)

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
	for _, x := range r.Overlaps {
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
	for i := range whole.NumField() {
		a, b := whole.Field(i), broken.Field(i)
		if a.Kind() == reflect.Func && a.Pointer() != b.Pointer() || a.Kind() != reflect.Func && !a.Equal(b) {
			changed = append(changed, whole.Type().Field(i).Name)
		}
	}
	return changed
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
	for i := range rules.NumField() {
		switch name := rules.Field(i).Name; {
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
