package workerlease_test

import (
	"slices"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// variant is the protocol with one rule broken, in a way that somebody might
// think is good enough.
type variant struct {
	name   string
	rule   string // which fields of machine.Rules are broken, or what else is
	regime regime // a kind of run in which it shows
	broken func(r *machine.Rules)
	around around
	as     string                     // what the world says of it, if it may say more
	audit  func(*sim.Result) []string // what else is wrong in the end, if the world doesn't mind
}

// around changes what an engine works with.
type around func(store.Ledger, workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions)

// variants are all of them. The comment on each describes a history in which it lets
// two holders work at once, a token not grow, a record go that is needed, a worker that
// lives lose its slot or its turn, a slot pass unused, or user code be called wrongly.
var variants = slices.Concat(timeVariants, stampVariants, loopVariants, claimVariants, orderVariants, costVariants, returnVariants, upkeepVariants, poisonVariants, extendVariants, doneVariants)

var standard = machine.Standard
