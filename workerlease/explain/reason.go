package explain

// Reason is why a worker did or didn't get a slot. Its texts don't change.
type Reason string

// The reasons.
const (
	// Had: the worker, or its group, had the slot, or has claimed it.
	Had Reason = "had"
	// HigherPriority: one with a higher priority (a lower number) had it, which goes first.
	HigherPriority Reason = "higherPriority"
	// SamePriority: one with the same priority was before it within the turn.
	SamePriority Reason = "samePriority"
	// LateInTurn: its turn came before that of the worker that had it, and it didn't claim in it.
	LateInTurn Reason = "lateInTurn"
	// Continued: the lease of another went on from the slot before, so that nobody could claim.
	Continued Reason = "continued"
	// NotEligible: it found itself unfit to lead. Detail says why.
	NotEligible Reason = "notEligible"
	// ClockUnfit: it knew store time too inexactly for a slot, or its clock jumped.
	ClockUnfit Reason = "clockUnfit"
	// Absent: it had not been seen when it should have been, or since its lease ended without a word. It died, or couldn't reach the
	// store.
	Absent Reason = "absent"
	// Stopped: it had stopped.
	Stopped Reason = "stopped"
	// NotStarted: it began after the slot was decided, and waited for the next one.
	NotStarted Reason = "notStarted"
	// Paused: an operator had paused the worker type. Order says who, why and until when.
	Paused Reason = "paused"
	// Preferred: an operator let another go first.
	Preferred Reason = "preferred"
	// Drained: an operator drained its host.
	Drained Reason = "drained"
	// Overran: its code had not returned from an earlier slot.
	Overran Reason = "overran"
	// SteppedBack: its code had failed in slot after slot, so that others went first.
	SteppedBack Reason = "steppedBack"
	// StillRunning: the job still ran for an earlier slot when this one began, so that nobody begins this one.
	StillRunning Reason = "stillRunning"
	// OtherSchedule: its schedule has no such slot.
	OtherSchedule Reason = "otherSchedule"
	// Unreachable: it couldn't reach the store in time.
	Unreachable Reason = "unreachable"
	// Refused: the store denied it access, or refused its claim.
	Refused Reason = "refused"
	// WentBack: the store had lost records, or might have, under which others could work.
	WentBack Reason = "wentBack"
	// Poisoned: the newest record of the ledger couldn't be obeyed, or left nothing to claim.
	Poisoned Reason = "poisoned"
	// TooLate: too little was left of the slot for it, or its process was paused.
	TooLate Reason = "tooLate"
	// Contends: nothing keeps it from claiming the slot, which is not decided.
	Contends Reason = "contends"
	// NobodyThere: of the workers in the roster, none was there.
	NobodyThere Reason = "nobodyThere"
	// Unknown: neither the ledger nor the roster says why.
	Unknown Reason = "unknown"
)

// said are the reasons that workers give in a presence, after "nobody had it: ": they are those of
// event.Missed.
var said = map[string]Reason{
	"store unreachable": Unreachable, "too late": TooLate, "overrun": Overran, "poison": Poisoned, "access denied": Refused,
	"refused by the store": Refused, "ineligible": NotEligible, "clock jumped": ClockUnfit, "record vanished": Poisoned, "store went back": WentBack, "stopped": Stopped, "no worker in time": NobodyThere,
	"paused": Paused, "drained": Drained, "asked to release": Preferred,
}
