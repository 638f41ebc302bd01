// Package runlog logs what happens to a worker and its command: as text for people,
// or as JSON.
//
// In JSON, every line has the fields workerType and instanceId, and the field slot
// once the worker has a lease: the slot that the line is about, or else that of the
// newest lease. Where there are several workers ([Log.Of]), a line about none of them
// has no workerType. A line about a slot has slotStart and slotEnd, too. Messages are
// constant; what differs is in fields. In text, a line has it all in its message.
package runlog

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Options of a log.
type Options struct {
	// To gets whole lines, one at a time. A write that blocks holds nobody up.
	To io.Writer
	// JSON is the format; otherwise it is text.
	JSON  bool
	Level zapcore.Level
	// Worker is the worker of all lines.
	Worker event.Worker
	// Store is where it leases, for hints. The log may be read in any directory.
	Store storeuri.Target
	// Once is set if the worker claims the current slot alone.
	Once bool
}

// Log logs what happens to a worker and its command. It is safe for concurrent use.
type Log struct {
	*process

	worker event.Worker
	named  bool   // its lines name the worker type: there are others
	work   string // what it does, as others are told

	// By mu of the process.
	ahead ahead
	tells bool // A failure of the command is reported as that of a task, too.
	ends  bool // the worker is to end
	// begun and running are the slots of the newest lease that began and of the
	// command that runs; over is that of the newest command that has ended.
	begun, running, over slots.Slot
	givenUp              event.Event // of the slot whose command runs; nil: it isn't
}

// process is what the logs of all workers of a process share.
type process struct {
	log   *zap.Logger
	lines *lines
	json  bool
	store storeuri.Target
	now   func() time.Time
	once  bool

	mu       sync.Mutex
	ready    bool   // store time is known
	failing  bool   // the store, since it last worked
	lasting  bool   // it has given an answer against which waiting can't help, and has not worked since
	stopping bool   // all leasing is to end
	checking bool   // there is a look at the ledger, which ends with what lasts
	held     func() // logs the first failure of a worker that was held back for it; nil: there is none
	clock    sample
	waiting  []*Log // for store time, to say which slot is their first
}

// New returns a log.
func New(o Options) *Log {
	to := &lines{to: o.To}
	l := &Log{process: &process{lines: to, log: logger(o, to), json: o.JSON, store: o.Store, once: o.Once, now: time.Now}, worker: o.Worker}
	l.store.Shown = o.Store.Place()
	past := &Log{process: &process{log: logger(o, zapcore.AddSync(o.To)), json: o.JSON}, worker: o.Worker}
	to.lost = func(n int) {
		past.say(max(o.Level, zap.WarnLevel), slots.Slot{}, fmt.Sprintf("%d lines of the log are missing here: nobody read it for a while", n), "log lines lost", zap.Int("lines", n))
	}
	return l
}

// Of is the log of one of several workers of a process. Its lines name the worker type, as text, too.
func (l *Log) Of(w event.Worker) *Log { return &Log{process: l.process, worker: w, named: true} }

// logger writes lines in the format of a log.
func logger(o Options, to zapcore.WriteSyncer) *zap.Logger {
	if !o.JSON {
		return zap.New(&textCore{LevelEnabler: o.Level, to: to})
	}
	c := zap.NewProductionEncoderConfig()
	c.TimeKey, c.MessageKey, c.EncodeDuration = "time", "message", zapcore.StringDurationEncoder
	c.EncodeTime = func(t time.Time, e zapcore.PrimitiveArrayEncoder) { e.AppendString(store.Format(t)) }
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(c), to, o.Level))
}

// Close ends the log: what is logged from now on is dropped. A worker that could not be stopped in time may go on for a
// moment, and why the command failed is its last word. It waits a second at most for what was logged to be read.
func (l *Log) Close() { l.lines.close() }

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
		if c := l.log.Check(level, l.whose(text)); c != nil {
			c.Write()
		}
		return
	}
	if c := l.log.Check(level, message); c != nil {
		if l.worker.WorkerType != "" {
			fields = append(fields, zap.String("workerType", l.worker.WorkerType))
		}
		fields = append(fields, zap.String("instanceId", l.worker.InstanceID))
		c.Write(append(fields, slotFields(about, begun)...)...)
	}
}

// whose is a text that says whose it is, if there are several workers.
func (l *Log) whose(text string) string {
	if l.named {
		return l.worker.WorkerType + ": " + text
	}
	return text
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

// Creating logs that a ledger is created. With --once that comes from cron and the like, each with a working
// directory of its own choice.
func (l *Log) Creating(t storeuri.Target) {
	level, text := zap.InfoLevel, "creating the ledger "+t.Place()+"; all workers of the type must use this file"
	if l.once && t.Relative() {
		level, text = zap.WarnLevel, text+": name it by its whole path, since other working directories have other files"
	}
	l.say(level, slots.Slot{}, text, "creating ledger", zap.String("store", t.Place()), zap.Bool("relative", t.Relative()))
}

// Listening logs where requests about the worker are answered.
func (l *Log) Listening(address string) {
	l.say(zap.InfoLevel, slots.Slot{}, "listening on http://"+address, "listening", zap.String("address", address))
}

// Unnotified logs that the service manager can't be told anything.
func (l *Log) Unnotified(err error) {
	l.say(zap.WarnLevel, slots.Slot{}, fmt.Sprintf("systemd can't be notified: %v", err), "notify failed", zap.Error(err))
}

// Untold logs that a target could not be told of an event.
func (l *Log) Untold(of, to string, err error) {
	l.say(zap.WarnLevel, slots.Slot{}, fmt.Sprintf("%s: %s not told: %v", of, to, err), "notification failed",
		zap.String("event", of), zap.String("target", to), zap.Error(err))
}

// OutputLost logs that output of the command can't be written to its file.
func (l *Log) OutputLost(err error) {
	l.say(zap.WarnLevel, slots.Slot{}, err.Error(), "output lost", zap.Error(err))
}

// Unopened logs that the store can't be opened yet. It is a StoreFailed event, and so logged
// like an outage.
func (l *Log) Unopened(err error) { l.Failed("open", err) }

// Failed logs that an operation of the store failed which no worker asked for.
func (l *Log) Failed(operation string, err error) {
	l.Observe(event.StoreFailed{Worker: l.worker, Operation: operation, Err: err})
}

// Began logs which worker begins to lease. tells says that a failure of its command is reported as that of a task.
func (l *Log) Began(o workerlease.Options, tells bool) {
	l.mu.Lock()
	l.tells, l.work = tells, o.Work
	l.expect(o)
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
		ofJob(*o.Job, slots.Shortest(o.Schedule), with)
	}
	if o.FailoverWithin > 0 {
		with(fmt.Sprintf("failover within %s", display.Brief(o.FailoverWithin)), zap.Duration("failoverWithin", o.FailoverWithin))
	}
	if o.Continuous {
		with("continuous", zap.Bool("continuous", true))
	}
	if o.NoFailback {
		with("no failback", zap.Bool("noFailback", true))
	}
	if o.WaitForBoundary {
		with("waits for the next boundary", zap.Bool("waitForBoundary", true))
	}
	if l.once {
		also = append(also, "the current slot alone")
	}
	who := fmt.Sprintf("worker %q of worker type %q, ", o.InstanceID, o.WorkerType)
	if l.named {
		who = ""
	}
	l.say(zap.InfoLevel, slots.Slot{}, fmt.Sprintf("%spriority %d, %s", who, o.Priority, strings.Join(also, ", ")), "worker began", fields...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaitFirst()
}

// ofJob adds what is said of a worker's job, for slots of a length.
func ofJob(j workerlease.Job, slot time.Duration, with func(text string, field zap.Field)) {
	with("once per slot", zap.Bool("oncePerSlot", true))
	if j.StartWithin > 0 {
		with(fmt.Sprintf("start within %s", display.Brief(j.StartWithin)), zap.Duration("startWithin", j.StartWithin))
	}
	if j.Overrun != workerlease.Finish {
		with("overrun "+j.Overrun.String(), zap.Stringer("overrun", j.Overrun))
	}
	if j.Timeout > 0 {
		with(fmt.Sprintf("run timeout %s", display.Brief(j.Timeout)), zap.Duration("runTimeout", j.Timeout))
	}
	if j.CatchUp != workerlease.CatchUpNone {
		text := fmt.Sprintf("catch up %v", j.CatchUp)
		if j.CatchUpWithin > 0 {
			text += fmt.Sprintf(" within %s", display.Brief(j.CatchUpWithin))
		}
		with(text, zap.Stringer("catchUp", j.CatchUp))
	}
	switch n := j.MaxAttempts; {
	case n > 1:
		with(fmt.Sprintf("%d attempts over %s or more", n, display.Brief(j.RetriesOver(slot))), zap.Int("maxAttempts", n))
	case n == 1:
		with("one attempt", zap.Int("maxAttempts", n))
	default:
		with("tried until the slot ends", zap.Skip())
	}
}

// Draining logs why leasing is to end, and how long the run that is under way may go on.
func (l *Log) Draining(why error, most time.Duration) {
	l.mu.Lock()
	l.ahead.schedule = nil // None comes next.
	l.mu.Unlock()
	l.say(zap.InfoLevel, slots.Slot{}, fmt.Sprintf("draining: %v: the run may go on for %s; a second signal stops it", why, display.Brief(most)),
		"draining", zap.String("why", why.Error()), zap.Duration("most", most))
}

// Stopping logs why leasing is to end, and that a running command is stopped. It must
// come before the end of the lease is logged: otherwise it would read as if the
// command outlived its lease. If all leasing ends, that is said once.
func (l *Log) Stopping(why error) {
	l.mu.Lock()
	said := l.stopping
	l.ends, l.stopping = true, l.stopping || !l.named
	running := l.running
	l.mu.Unlock()
	why = cmp.Or(why, interrupt.Err)
	if !said {
		l.say(zap.InfoLevel, slots.Slot{}, fmt.Sprintf("stopping: %v", why), "stopping", zap.String("why", why.Error()))
	}
	if !running.IsZero() {
		l.say(zap.InfoLevel, running, slotText(running)+": stopping the command", "stopping command")
	}
}

// Failing notes that leasing ends by an error. The error is shown instead of the reason to stop, and
// operations that are canceled now are not reported.
func (l *Log) Failing() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends, l.stopping = true, l.stopping || !l.named
}

// Cost logs what leasing cost, if the store charges for it.
func (l *Log) Cost(c workerlease.Charges) {
	if text := charges.Text(c); text != "" {
		l.say(zap.InfoLevel, slots.Slot{}, "leasing cost "+text, "leasing cost", zap.Float64("requestUnits", c.Total()))
	}
}

// Stopped logs that leasing has ended. If all leasing ends, the worker of a log among several says nothing.
func (l *Log) Stopped() {
	l.mu.Lock()
	all := l.stopping
	l.mu.Unlock()
	if !l.named || !all {
		l.say(zap.InfoLevel, slots.Slot{}, "stopped", "stopped")
	}
}

// Reached reports whether the store answered the newest operation.
func (l *Log) Reached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready && !l.failing
}
