package store

// Durable is a Ledger that says what becomes of the records that it has acknowledged. That they stay is one of
// the two assumptions of every lease: where one is lost, a second worker may get the same slot.
type Durable interface {
	// Durability asks nobody, doesn't block, and is safe for concurrent use. It depends on the ledger's options,
	// and on what its operations have found out of the store so far.
	Durability() Durability
}

// Durability is what of the acknowledged records survives, in one plain sentence each, for people. None is empty.
type Durability struct {
	// Crash: a process of the store dies, that of one server or that which holds the records.
	Crash string `json:"crash"`
	// Power: the machine of such a process loses power, or its system crashes.
	Power string `json:"power"`
	// Failover: a copy of the ledger takes over, such as another server or another region.
	Failover string `json:"failover"`
}
