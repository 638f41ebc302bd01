package event

import (
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogToZap is LogTo for a zap logger: the same lines, levels and attributes. Nil logs nothing.
func LogToZap(l *zap.Logger) Observer {
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
