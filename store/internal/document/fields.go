// Package document holds what the ledgers in document databases share: the names
// of the stored fields, and a decoder that is strict with the envelope of a record
// and lenient with its information. Each store brings the reading of single values
// in its format.
package document

// The stored fields. Decode demands those of the envelope.
const (
	WorkerType  = "workerType"
	Seq         = "seq"
	Kind        = "kind"
	InstanceID  = "instanceId"
	Group       = "group"
	Claim       = "claim"
	Priority    = "priority"
	SlotStart   = "slotStart"
	SlotEnd     = "slotEnd"
	WindowStart = "windowStart"
	WindowEnd   = "windowEnd"
	Token       = "token"
	Schedule    = "schedule"
	FixedAt     = "fixedAt"
	ReadAt      = "readAt"
	Worker      = "worker"
	Work        = "work"
	Metadata    = "metadata"
	DoneUntil   = "doneUntil"
	Attempt     = "attempt"
	Spared      = "spared"
	Orders      = "orders"
	Done        = "done"
)

// Fields returns the names of all fields that Decode reads. A query asks for no
// others, so that a large document of another program isn't sent over the network.
func Fields() []string {
	return []string{
		WorkerType, Seq, Kind, InstanceID, Group, Claim, Priority,
		SlotStart, SlotEnd, WindowStart, WindowEnd, Token, Schedule, FixedAt,
		ReadAt, Worker, Work, Metadata, DoneUntil, Attempt, Spared, Orders, Done,
	}
}
