package runlog

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
)

// reminder is how often a text log repeats that the store is down.
const reminder = time.Minute

// outage makes one story of a store that doesn't answer: a line when it begins, every
// now and then, and when it ends, and not at every retry.
type outage struct {
	ready    bool // store time is known
	failing  bool // the store doesn't answer
	reported time.Time
}

// failure is the line about an operation that failed at a time. what says which, and
// stopping that leasing is to end.
func (o *outage) failure(now time.Time, stopping bool, what string, err error) (zapcore.Level, string) {
	first := !o.failing
	if o.failing = true; first {
		o.reported = now
	}
	switch {
	case stopping:
	case first && !o.ready && advice.Lasting(err):
		return zap.WarnLevel, fmt.Sprintf("store not reached yet: %v", err)
	case first && !o.ready:
		return zap.WarnLevel, fmt.Sprintf("store not reached yet: %v; trying on", err)
	case first:
		return zap.WarnLevel, what
	case now.Sub(o.reported) >= reminder:
		o.reported = now
		return zap.WarnLevel, fmt.Sprintf("store still unreachable: %v", err)
	}
	return zap.DebugLevel, what
}
