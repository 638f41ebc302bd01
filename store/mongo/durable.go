package mongo

import "github.com/slotlease/slotlease/store"

// Durability says what write concern majority with journal means. See [store.Durable].
func (l *Ledger) Durability() store.Durability {
	return store.Durability{
		Crash:    "All survive: an append is acknowledged when a majority of the members, or a standalone server, has it in the journal.",
		Power:    "All survive, if disks keep what they were told to sync: the journals were synced first. Services that speak the protocol promise this themselves.",
		Failover: "All survive: only a member that has them can be elected. A standalone server has no copy.",
	}
}
