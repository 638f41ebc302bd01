package event

import (
	"log/slog"
	"time"

	"github.com/slotlease/slotlease/store"
)

// What the store does, and what its clock shows.
type (
	// Throttled: the store asks for a pause before the next try.
	Throttled struct {
		Worker
		Operation  string
		RetryAfter time.Duration
		Err        error
		Again      bool // as in StoreFailed
	}
	// Operated: a ledger operation (append, tail, get, now, trim, …) has come back after Took, with
	// its error or nil. What that means comes as another event, such as StoreFailed, Unknown or
	// Conflict.
	Operated struct {
		Worker
		Operation string
		Took      time.Duration
		Err       error
	}
	// StoreFailed: a ledger operation failed, and had no effect.
	StoreFailed struct {
		Worker
		Operation string
		Err       error
		// Again says that a failure with this meaning was reported since the store last worked, by this worker or another
		// one of the client: loggers show it for debugging alone.
		Again bool
	}
	// StoreRecovered: the store works again, for the operation that had failed.
	StoreRecovered struct {
		Worker
		// Took is from the start of the first operation that failed to the end of the one that didn't, or to when a next try
		// was due after the last that failed, if that is sooner.
		Took time.Duration
		// Failures counts the operations that failed, Missed the slots that passed meanwhile without a holder that the
		// worker knows of, and Lapsed its leases that ended because they couldn't be extended.
		Failures, Missed, Lapsed int
		// Quiet says that another worker of the client has reported the failures.
		Quiet bool
	}
	// ClockSample: the store answered with its time.
	ClockSample struct {
		Worker
		Server      string
		RoundTrip   time.Duration
		StoreTime   time.Time
		Uncertainty time.Duration
		// Note is what the store adds, such as which servers' clocks can't be asked (see
		// store.Description); empty if there is nothing to say.
		Note string
	}
	// ClockJump: the store's time contradicts earlier samples, or further samples have
	// decided between them.
	ClockJump struct {
		Worker
		Server      string
		Verdict     ClockVerdict
		StoreTime   time.Time
		Uncertainty time.Duration
	}
	// TooUncertain: slots, or the parts that FailoverWithin makes of them, are too short
	// for an uncertainty of store time of ±Uncertainty, so slots are lost in part or
	// whole. It is reported once; Callbacks.Error gets Err.
	TooUncertain struct {
		Worker
		Uncertainty time.Duration
		Err         error
	}
	// Lapsed: a lease that could have been extended has ended because the store took no
	// appends for about Outage, as while its servers elect a primary. Err names the value of the
	// option that would have held it. It is reported once, when the store answers again;
	// Callbacks.Error gets Err.
	Lapsed struct {
		Worker
		Outage time.Duration
		Err    error
	}
	// StoreWarning: the store describes a shortcoming in one line, such as a clock that seems
	// wrong (see store.Description). Each is reported once, whatever its figures are later, and ten
	// at most; Callbacks.Error gets it, too.
	StoreWarning struct {
		Worker
		Text string
	}
	// WatchFailed: the store gives no hints here, or none for now (see store.Watcher), so standbys look
	// at the ledger only when it is time. It is reported once, by one of the client's workers
	// with FailoverWithin, and the store is asked again, unless Err matches errors.ErrUnsupported.
	WatchFailed struct {
		Worker
		Err error
	}
	// Charged: the store billed an operation, in its own unit (request units for Cosmos
	// DB), whatever the outcome. Status has the sums.
	Charged struct {
		Worker
		Operation string
		Units     float64
	}
)

// ClockVerdict says what became of samples of the store's time that contradict one
// another.
type ClockVerdict string

// The verdicts.
const (
	// ClockInQuestion: a sample contradicts the earlier ones. A lease that is held ends at
	// once, and the time is as uncertain as the samples are apart, until further ones have
	// decided.
	ClockInQuestion ClockVerdict = "contradicts earlier answers"
	// AnswerDropped: three samples in a row speak against a clock that fewer had ever
	// shown. It was a wrong answer, and is forgotten.
	AnswerDropped ClockVerdict = "an earlier answer was wrong"
	// JumpConfirmed: three samples in a row speak against the clock that was in force.
	// Nothing begins until all that was granted by it is over: at most the longest window
	// in the ledger, or one's own slot, and five minutes.
	JumpConfirmed ClockVerdict = "the clock has jumped"
)

// How they are logged.

func (e Throttled) line() line {
	return trouble("store throttles", e.Again, e.Err, attrs{
		{"operation", e.Operation}, {"retryAfter", e.RetryAfter}, {"error", e.Err},
	})
}

func (e Operated) line() line {
	a := attrs{{"operation", e.Operation}, {"took", e.Took}}
	if e.Err != nil {
		a = append(a, attr{"error", e.Err})
	}
	return line{slog.LevelDebug, "operation ended", a}
}

func (e StoreFailed) line() line {
	return trouble("store failed", e.Again, e.Err, attrs{{"operation", e.Operation}, {"error", e.Err}})
}

func (e StoreRecovered) line() line {
	level := slog.LevelInfo
	switch {
	case e.Missed+e.Lapsed > 0:
		level = slog.LevelWarn
	case e.Quiet:
		level = slog.LevelDebug
	}
	return line{level, "store works again", attrs{{"took", e.Took}, {"failures", e.Failures}, {"missed", e.Missed}, {"lapsed", e.Lapsed}}}
}

func (e ClockSample) line() line {
	a := attrs{{"server", e.Server}, {"roundTrip", e.RoundTrip}, {"uncertainty", e.Uncertainty}}
	if e.Note != "" {
		a = append(a, attr{"note", e.Note})
	}
	return line{slog.LevelDebug, "clock sample", a}
}

func (e ClockJump) line() line {
	return line{slog.LevelWarn, "clock jump", attrs{
		{"server", e.Server},
		{"verdict", string(e.Verdict)},
		{"storeTime", store.Format(e.StoreTime)},
		{"uncertainty", e.Uncertainty},
	}}
}

func (e TooUncertain) line() line {
	return line{slog.LevelError, "time too uncertain", attrs{{"uncertainty", e.Uncertainty}, {"error", e.Err}}}
}

func (e Lapsed) line() line {
	return line{slog.LevelWarn, "lease lapsed in an outage", attrs{{"outage", e.Outage}, {"error", e.Err}}}
}

func (e StoreWarning) line() line {
	return line{slog.LevelWarn, "store warning", attrs{{"warning", e.Text}}}
}

func (e WatchFailed) line() line {
	return line{slog.LevelDebug, "watch failed", attrs{{"error", e.Err}}}
}

func (e Charged) line() line {
	return line{slog.LevelDebug, "operation charged", attrs{{"operation", e.Operation}, {"units", e.Units}}}
}
