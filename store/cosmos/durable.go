package cosmos

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
)

var _ store.Described = (*Ledger)(nil)

// Describe says what the ledger knows of its store. See [store.Described].
func (l *Ledger) Describe() store.Description {
	return store.Description{
		Durability: l.Durability, Warning: func() string { return l.Account().Warning() }, InitScript: l.InitScript, Examine: l.Examine,
	}
}

// Durability says what Microsoft's documentation promises for the account, as far as its properties are
// known by now.
func (l *Ledger) Durability() store.Durability { return l.Account().durability() }

func (a Account) durability() store.Durability {
	return store.Durability{
		Crash:    "All survive: an append is acknowledged when a majority of the region's replicas has it.",
		Power:    "All survive: each of these replicas has a machine of its own.",
		Failover: a.afterFailover(),
	}
}

// afterFailover is what survives the loss of the write region.
func (a Account) afterFailover() string {
	const strong, bounded = string(azcosmos.ConsistencyLevelStrong), string(azcosmos.ConsistencyLevelBoundedStaleness)
	switch n := len(a.ReadRegions); {
	case a.ReadAt.IsZero() || n == 0:
		return "It isn't known yet: all survive with one region, or with Strong consistency; with others the last moments are lost, up to about 15 minutes."
	case n == 1:
		return "There is one region, so that no other takes over; if it is lost for good, a backup may lack four hours."
	case a.Consistency == strong:
		return fmt.Sprintf("All survive: the account has %d regions and Strong consistency.", n)
	case a.Consistency == bounded:
		return fmt.Sprintf("An unplanned one loses the last moments, up to the configured staleness: the account has %d regions and BoundedStaleness.", n)
	default:
		return fmt.Sprintf("An unplanned one loses up to about 15 minutes: the account has %d regions, and not Strong consistency.", n)
	}
}
