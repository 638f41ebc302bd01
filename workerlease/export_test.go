package workerlease

import "github.com/slotlease/slotlease/workerlease/internal/machine"

// SetRules sets the rules of a client, and of the workers that it starts from then on.
func SetRules(c *Client, r machine.Rules) { c.rules, c.line.Confirm = &r, r.Confirm }
