package memory

import "github.com/slotlease/slotlease/store"

var _ store.Described = (*Ledger)(nil)

// Describe says what the ledger knows of its store. See [store.Described].
func (l *Ledger) Describe() store.Description {
	return store.Description{Durability: l.Durability}
}

// Durability says that nothing outlives the process.
func (l *Ledger) Durability() store.Durability {
	return store.Durability{
		Crash:    "Nothing survives: the records are in the memory of this process.",
		Power:    "Nothing survives.",
		Failover: "There is no copy.",
	}
}
