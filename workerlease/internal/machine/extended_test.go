package machine_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// The same where leases are extended, and work is done once per slot.
func TestPropertyTheRulesHoldWhereLeasesAreExtended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawnConfig(t)
		c.Group = ""
		interval := c.Schedule.At(time.Unix(0, 0)).Length()
		if d := interval / time.Duration(rapid.IntRange(2, 8).Draw(t, "parts")); d >= machine.MinFailover(c.Margin) {
			c.Failover = d
		}
		c.Lead = min(c.Lead, c.Failover/2)
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
		case 1:
			c.Continuous, c.NoFailback = true, rapid.Bool().Draw(t, "stays")
		case 2:
			c.Once, c.RunMissed = true, rapid.Bool().Draw(t, "late")
			c.MaxAttempts = rapid.IntRange(0, 3).Draw(t, "attempts")
		}
		befall(t, c)
	})
}
