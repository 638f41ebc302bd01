// Package runlog logs what happens to a worker and its command: as text for people,
// or as JSON.
//
// In JSON, every line has the fields workerType and instanceId, and the field slot
// once the worker has a lease: the slot that the line is about, or else that of the
// newest lease. A line about a slot has slotStart and slotEnd, too. Messages are
// constant; what differs is in fields. In text, a line has it all in its message.
package runlog

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// Options of a log.
type Options struct {
	// To gets whole lines.
	To io.Writer
	// JSON is the format; otherwise it is text.
	JSON  bool
	Level zapcore.Level
	// Worker is the worker of all lines.
	Worker workerlease.Worker
	// Store is where it leases, for hints. The log may be read in any directory.
	Store storeuri.Target
	// Once is set if the worker claims the current slot alone.
	Once bool
}

// Log logs what happens to a worker and its command. It is safe for concurrent use.
type Log struct {
	log    *zap.Logger
	lines  *lines
	json   bool
	worker workerlease.Worker
	store  storeuri.Target
	now    func() time.Time
	once   bool

	mu     sync.Mutex
	outage outage
	ahead  ahead
	job    bool // Each slot has one.
	// stopping is set when leasing is to end.
	stopping bool
	// begun and running are the slots of the newest lease that began and of the
	// command that runs; over is that of the newest command that has ended.
	begun, running, over slots.Slot
}

// New returns a log.
func New(o Options) *Log {
	to := &lines{to: o.To}
	l := &Log{lines: to, json: o.JSON, worker: o.Worker, store: o.Store, once: o.Once, now: time.Now, outage: outage{once: o.Once}}
	l.store.Shown = o.Store.Place()
	if !o.JSON {
		l.log = zap.New(&textCore{LevelEnabler: o.Level, to: to})
		return l
	}
	c := zap.NewProductionEncoderConfig()
	c.TimeKey, c.MessageKey, c.EncodeDuration = "time", "message", zapcore.StringDurationEncoder
	c.EncodeTime = func(t time.Time, e zapcore.PrimitiveArrayEncoder) { e.AppendString(store.Format(t)) }
	l.log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(c), to, o.Level))
	return l
}

// Close ends the log: what is logged from now on is dropped. A worker that could not be stopped in time may go on for a
// moment, and why the command failed is its last word. It doesn't wait for a line that is being written, which may still
// come.
func (l *Log) Close() { l.lines.closed.Store(true) }

// lines passes lines on, one at a time, until it is closed.
type lines struct {
	to     io.Writer
	mu     sync.Mutex
	closed atomic.Bool
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return len(line), nil
	}
	return l.to.Write(line)
}

// Sync does nothing: each line is passed on at once.
func (l *lines) Sync() error { return nil }

// say logs a line: the text, or as JSON the message and the fields. A line about no
// slot has the zero slot.
func (l *Log) say(level zapcore.Level, about slots.Slot, text, message string, fields ...zap.Field) {
	l.mu.Lock()
	begun := l.begun
	l.mu.Unlock()
	l.write(level, about, begun, text, message, fields...)
}

// write is say for callers that know the slot of the newest lease.
func (l *Log) write(level zapcore.Level, about, begun slots.Slot, text, message string, fields ...zap.Field) {
	if !l.json {
		if c := l.log.Check(level, text); c != nil {
			c.Write()
		}
		return
	}
	if c := l.log.Check(level, message); c != nil {
		fields = append(fields, zap.String("workerType", l.worker.WorkerType), zap.String("instanceId", l.worker.InstanceID))
		c.Write(append(fields, slotFields(about, begun)...)...)
	}
}

// slotFields are the slot of a line in JSON: its own, or that of the newest lease.
func slotFields(about, begun slots.Slot) []zap.Field {
	switch {
	case !about.IsZero():
		return append(bounds(about), zap.Stringer("slot", about))
	case !begun.IsZero():
		return []zap.Field{zap.Stringer("slot", begun)}
	}
	return nil
}

// bounds are a slot in JSON, as inspect shows it.
func bounds(s slots.Slot) []zap.Field {
	return []zap.Field{zap.String("slotStart", store.Format(s.Start)), zap.String("slotEnd", store.Format(s.End))}
}

// Creating logs that a ledger is created, which is at place.
func (l *Log) Creating(place string) {
	l.say(zap.InfoLevel, slots.Slot{}, "creating the ledger "+place+"; all workers of the type must use this file", "creating ledger", zap.String("store", place))
}

// Listening logs where requests about the worker are answered.
func (l *Log) Listening(address string) {
	l.say(zap.InfoLevel, slots.Slot{}, "listening on http://"+address, "listening", zap.String("address", address))
}

// Unnotified logs that the service manager can't be told anything.
func (l *Log) Unnotified(err error) {
	l.say(zap.WarnLevel, slots.Slot{}, fmt.Sprintf("systemd can't be notified: %v", err), "notify failed", zap.Error(err))
}

// Unopened logs that the store can't be opened yet. It is a StoreFailed event, and so logged
// like an outage.
func (l *Log) Unopened(err error) {
	l.Observe(workerlease.StoreFailed{Worker: l.worker, Operation: "open", Err: err})
}

// Began logs which worker begins to lease.
func (l *Log) Began(o workerlease.Options) {
	l.mu.Lock()
	l.job = o.Job != nil
	// A member of a group joins the lease that this holds.
	l.ahead.schedule, l.ahead.waits = o.Schedule, !o.JoinMidSlot && o.Group == "" && !l.once
	l.mu.Unlock()
	fields := []zap.Field{zap.Int("priority", o.Priority), zap.Stringer("schedule", o.Schedule)}
	var also []string
	if l.once {
		fields = append(fields, zap.Bool("once", true))
	}
	with := func(text string, field zap.Field) {
		also, fields = append(also, text), append(fields, field)
	}
	if o.Group != "" {
		with(fmt.Sprintf("group %q", o.Group), zap.String("group", o.Group))
	}
	also = append(also, o.Schedule.String())
	if o.Job != nil {
		with("once per slot", zap.Bool("oncePerSlot", true))
		if n := o.Job.MaxAttempts; n > 0 {
			with(fmt.Sprintf("max attempts %d", n), zap.Int("maxAttempts", n))
		}
		if o.Job.RunMissed {
			with("run missed", zap.Bool("runMissed", true))
		}
	}
	if o.FailoverWithin > 0 {
		with(fmt.Sprintf("failover within %v", o.FailoverWithin), zap.Duration("failoverWithin", o.FailoverWithin))
	}
	if o.Continuous {
		with("continuous", zap.Bool("continuous", true))
	}
	if o.NoFailback {
		with("no failback", zap.Bool("noFailback", true))
	}
	if l.once {
		also = append(also, "the current slot alone")
	}
	l.say(zap.InfoLevel, slots.Slot{}, fmt.Sprintf("worker %q of worker type %q, priority %d, %s", o.InstanceID, o.WorkerType, o.Priority, strings.Join(also, ", ")), "worker began", fields...)
}

// Warn logs a shortcoming of the store's account.
func (l *Log) Warn(text string) {
	l.say(zap.WarnLevel, slots.Slot{}, text, "store warning", zap.String("warning", text))
}

// Stopping logs why leasing is to end, and that a running command is stopped. It must
// come before the end of the lease is logged: otherwise it would read as if the
// command outlived its lease.
func (l *Log) Stopping(why error) {
	l.mu.Lock()
	l.stopping = true
	running := l.running
	l.mu.Unlock()
	why = cmp.Or(why, interrupt.Err)
	l.say(zap.InfoLevel, slots.Slot{}, fmt.Sprintf("stopping: %v", why), "stopping", zap.String("why", why.Error()))
	if !running.IsZero() {
		l.say(zap.InfoLevel, running, slotText(running)+": stopping the command", "stopping command")
	}
}

// Failing notes that leasing ends by an error. The error is shown instead of the reason to stop, and
// operations that are canceled now are not reported.
func (l *Log) Failing() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping = true
}

// Cost logs what leasing cost, if the store charges for it.
func (l *Log) Cost(c workerlease.Charges) {
	if text := charges.Text(c); text != "" {
		l.say(zap.InfoLevel, slots.Slot{}, "leasing cost "+text, "leasing cost", zap.Float64("requestUnits", c.Total()))
	}
}

// Stopped logs that leasing has ended.
func (l *Log) Stopped() { l.say(zap.InfoLevel, slots.Slot{}, "stopped", "stopped") }

// Reached reports whether the store answered the newest operation.
func (l *Log) Reached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outage.ready && !l.outage.failing
}
