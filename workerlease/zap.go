package workerlease

import (
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogTo returns an observer that writes every event to a zap logger, as one line with a
// constant message and the attributes workerType and instanceId. A failure or a panic of
// user code is an error, with its stack; a condition that needs attention (missed slots,
// overruns, a failing store, clock jumps, poison, mismatches) is a warning; the course of
// leases is information; the rest is for debugging. Nil logs nothing.
func LogTo(l *zap.Logger) Observer {
	if l == nil {
		l = zap.NewNop()
	}
	return zapObserver{l}
}

type zapObserver struct{ log *zap.Logger }

// zapLevels are zap's names of the levels.
var zapLevels = map[slog.Level]zapcore.Level{
	slog.LevelDebug: zap.DebugLevel, slog.LevelInfo: zap.InfoLevel, slog.LevelWarn: zap.WarnLevel, slog.LevelError: zap.ErrorLevel,
}

// Observe logs an event.
func (o zapObserver) Observe(e Event) {
	l := lineOf(e)
	check := o.log.Check(zapLevels[l.level], l.message)
	if check == nil {
		return
	}
	w := e.Of()
	fields := make([]zap.Field, 0, len(l.attrs)+2)
	for _, a := range l.attrs {
		fields = append(fields, zap.Any(a.key, a.value))
	}
	check.Write(append(fields, zap.String("workerType", w.WorkerType), zap.String("instanceId", w.InstanceID))...)
}
