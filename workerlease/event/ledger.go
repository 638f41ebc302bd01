package event

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// What the ledger shows.
type (
	// RosterFailed: the roster can't be read or written (see ClientOptions.Roster), although the store answers. No
	// lease depends on it. It is reported once, by one of the client's workers, and the store is asked again.
	RosterFailed struct {
		Worker
		Err error
	}
	// Conflict: an append found its key taken. Another worker was faster, or a driver
	// retried: the record at the key decides.
	Conflict struct {
		Worker
		Seq int64
	}
	// Unknown: the reply to an append leaves open whether the record was stored. If the
	// store throttled it, Throttled is reported instead.
	Unknown struct {
		Worker
		Seq   int64
		Err   error
		Again bool // as in StoreFailed
	}
	// Trimmed: old records were deleted.
	Trimmed struct {
		Worker
		Count int
	}
	// Poison: the newest record can't be obeyed, or (Seq 0) a key can't be read. If a key
	// below it is free, the ledger goes on below it, and no slot is lost until it has come
	// there. Otherwise slots are lost until the poison is superseded: 5 min and a
	// slot or, if that is longer, its longest window, up to 24 h, after some worker has seen it
	// (this worker, if it is only too far ahead of store time, or the first record). If no record below it
	// can be obeyed, and record 1 has been trimmed, no worker supersedes it: see operate.Desk.Override.
	Poison struct {
		Worker
		Seq int64
		Err error
	}
	// Blocked: the newest record of the ledger can be obeyed, and leaves nothing to claim up
	// to Until, more than a day after the slot: its window lasts that long or, if Done is set,
	// it says that all slots up to then are done. It is reported once. An operator can end it:
	// see operate.Desk.Override.
	Blocked struct {
		Worker
		Seq   int64
		Until time.Time
		Done  bool
	}
	// PoisonReset: poison was superseded.
	PoisonReset struct {
		Worker
		Seq    int64
		Reason string
	}
	// Vanished: a grant to this worker is no longer in the ledger. The read was stale, or
	// the store took back what it had confirmed; then another worker may have been granted
	// the same window. Check the store's write and read concern, and whether a backup was
	// restored. Or an operator has overridden the grant: Err says who. A worker notices when
	// it reads the ledger in the next slot, unless more than 16 records have come after its
	// own.
	Vanished struct {
		Worker
		Seq int64
		Err error
	}
	// WentBack: the store has lost records that it had acknowledged, the newest that this worker knows being Seq, or,
	// with a Seq of 0, it may have lost some, since its history has another name. Others may work under them, so this worker
	// claims nothing before Until. Find out what happened: a flush, a restored copy, a failover to a server that lacked
	// records. Err says what is known.
	WentBack struct {
		Worker
		Seq   int64
		Until time.Time
		Err   error
	}
	// ScheduleMismatch: another worker of the type, Holder, has other slots: by another schedule,
	// or by another release of the tz database if Ours and Theirs are the same. It comes once for
	// each such schedule.
	ScheduleMismatch struct {
		Worker
		Ours, Theirs string
		Holder       string
		// TheirSlot is the one that shows it, and OurSlot this worker's at its start.
		OurSlot, TheirSlot slots.Slot
	}
	// WorkMismatch: another worker of the type, Holder, does something else, as both say (Options.Work): only one of two jobs is
	// done in a slot. It comes once for each such work, of up to four, whose worker has written anything since this one came.
	WorkMismatch struct {
		Worker
		Ours, Theirs string
		Holder       string
	}
)

// Text is one line for a person: whose slots differ, and why.
func (e ScheduleMismatch) Text() string {
	if e.Ours != e.Theirs {
		return fmt.Sprintf("schedules differ: ours is %q, that of %q is %q; give all workers of the type the same", e.Ours, e.Holder, e.Theirs)
	}
	return fmt.Sprintf("slots differ, although the schedule is the same, %q: %q has %v, and we have %v; "+
		"give all machines the same release of the tz database", e.Ours, e.Holder, e.TheirSlot, e.OurSlot)
}

// Text is one line for a person.
func (e WorkMismatch) Text() string {
	return fmt.Sprintf("%q has, or had, the lease for another command: %s, and ours is %s; only one of them runs in each slot: unless that is an earlier version, give each a worker type of its own", e.Holder, e.Theirs, e.Ours)
}

// How they are logged.

func (e RosterFailed) line() line {
	return line{slog.LevelWarn, "roster failed", attrs{{"error", e.Err}}}
}

func (e Conflict) line() line {
	return line{slog.LevelDebug, "append conflict", attrs{{"seq", e.Seq}}}
}

func (e Unknown) line() line {
	return trouble("append outcome unknown", e.Again, e.Err, attrs{{"seq", e.Seq}, {"error", e.Err}})
}

func (e Trimmed) line() line {
	return line{slog.LevelDebug, "ledger trimmed", attrs{{"count", e.Count}}}
}

func (e Poison) line() line {
	return line{slog.LevelWarn, "ledger poisoned", attrs{{"seq", e.Seq}, {"error", e.Err}}}
}

func (e Blocked) line() line {
	return line{slog.LevelWarn, "ledger blocked", attrs{{"seq", e.Seq}, {"until", store.Format(e.Until)}, {"done", e.Done}}}
}

func (e PoisonReset) line() line {
	return line{slog.LevelWarn, "ledger reset", attrs{{"seq", e.Seq}, {"reason", e.Reason}}}
}

func (e Vanished) line() line {
	return line{slog.LevelError, "record vanished", attrs{{"seq", e.Seq}, {"error", e.Err}}}
}

func (e WentBack) line() line {
	return line{slog.LevelError, "store went back", attrs{{"seq", e.Seq}, {"until", store.Format(e.Until)}, {"error", e.Err}}}
}

func (e WorkMismatch) line() line {
	return line{slog.LevelWarn, "work mismatch", attrs{{"ours", e.Ours}, {"theirs", e.Theirs}, {"holder", e.Holder}}}
}

func (e ScheduleMismatch) line() line {
	return line{slog.LevelWarn, "schedule mismatch", attrs{
		{"ours", e.Ours}, {"theirs", e.Theirs}, {"holder", e.Holder}, {"ourSlot", e.OurSlot}, {"theirSlot", e.TheirSlot},
	}}
}
