package s3

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

// Durability is what Amazon promises of S3; of a service with an endpoint of its own nothing is known.
func (l *Ledger) Durability() store.Durability {
	if l.address.endpoint != nil {
		const asSet = "As the service at the endpoint is set up: it must acknowledge no record before it is safe."
		return store.Durability{
			Crash: asSet, Power: asSet,
			Failover: "None may take over a bucket that is copied with delay: the newest records would be missing, leases among them.",
		}
	}
	return store.Durability{
		Crash:    "All: S3 acknowledges a record when several machines of the region have it.",
		Power:    "All: S3 acknowledges a record when at least three availability zones have it, or one for the classes of a single zone.",
		Failover: "Of a replica in another region nothing is sure: replication is asynchronous, so that the newest records are missing, leases among them.",
	}
}
