package workerlease

import "github.com/slotlease/slotlease/workerlease/internal/machine"

// SetRules sets the rules of the workers that a client starts from then on.
func SetRules(c *Client, r machine.Rules) { c.rules = r }
