package runlog

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/store"
)

// reminder is how often a text log repeats that the store is down.
const reminder = time.Minute

// outage makes one story of a store that doesn't answer: a line when it begins, every
// now and then, and when it ends, and not at every retry.
type outage struct {
	once     bool // leasectl ends with its command, whatever the store does meanwhile
	ready    bool // store time is known
	failing  bool // the store doesn't answer
	barred   bool // it answers, and refuses or denies what isn't the time
	reported time.Time
}

// failure returns the line about an operation that failed at a time. what describes the operation;
// barred is true if the store refuses or denies it although it may show the time; stopping is true
// once leasing is to end.
func (o *outage) failure(now time.Time, stopping, barred bool, what string, err error) (zapcore.Level, string) {
	first := !o.failing
	if o.failing = true; first {
		o.reported = now
	}
	o.barred = o.barred || barred
	ends := fmt.Sprintf("; leasectl ends if that lasts for %v", advice.Patience)
	switch {
	case !o.ready && !errors.Is(err, store.ErrDenied):
		ends = "" // It ends now.
	case o.ready && o.once:
		ends = ""
	case advice.Removed(err):
		ends = fmt.Sprintf("; leasectl ends in %v", advice.Patience)
	}
	switch {
	case stopping:
	case first && !o.ready && advice.Lasting(err):
		return zap.WarnLevel, fmt.Sprintf("store not reached yet: %v%s", err, ends)
	case first && !o.ready:
		return zap.WarnLevel, fmt.Sprintf("store not reached yet: %v; trying on", err)
	case first && advice.Lasting(err):
		return zap.WarnLevel, what + ends
	case first:
		return zap.WarnLevel, what
	case now.Sub(o.reported) >= reminder:
		o.reported = now
		if o.barred {
			return zap.WarnLevel, fmt.Sprintf("store still fails: %v", err)
		}
		return zap.WarnLevel, fmt.Sprintf("store still unreachable: %v", err)
	}
	return zap.DebugLevel, what
}

// over notes that an operation succeeded, and reports whether an outage has ended by that. If the
// store refused access, a reading of its time doesn't end it: that needs no rights.
func (o *outage) over(time bool) bool {
	if !o.failing || o.barred && time {
		return false
	}
	o.failing, o.barred = false, false
	return true
}
