package azblob

import (
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var (
	_ store.Durable = (*Ledger)(nil)
	_ store.Paced   = (*Ledger)(nil)
	_ store.Warner  = (*Ledger)(nil)
)

// FailoverFloor is 8 s with the default of ServerSkew: time comes from dates of whole seconds.
func (l *Ledger) FailoverFloor() time.Duration {
	return storekit.Dates{Skew: l.skew}.FailoverFloor()
}

// Durability is what Microsoft promises of Azure Storage.
func (l *Ledger) Durability() store.Durability {
	return store.Durability{
		Crash:    "All: Azure acknowledges a record when three copies in the region have it.",
		Power:    "All: the three copies are on different racks, and with ZRS or GZRS in different zones.",
		Failover: "With GRS, GZRS and their RA variants a failover to the second region loses what wasn't copied yet, by Microsoft usually less than 15 minutes; with LRS and ZRS there is none.",
	}
}
