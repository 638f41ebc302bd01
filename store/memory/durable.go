package memory

import "github.com/slotlease/slotlease/store"

// Durability says that nothing outlives the process. See [store.Durable].
func (l *Ledger) Durability() store.Durability {
	return store.Durability{
		Crash:    "Nothing survives: the records are in the memory of this process.",
		Power:    "Nothing survives.",
		Failover: "There is no copy.",
	}
}
