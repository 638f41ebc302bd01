package runlog

import (
	"fmt"
	"io"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// textCore is a zap core that writes text: time, level, message.
type textCore struct {
	zapcore.LevelEnabler
	to io.Writer
}

func (c *textCore) With([]zapcore.Field) zapcore.Core { return c }
func (c *textCore) Sync() error                       { return nil }

func (c *textCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *textCore) Write(e zapcore.Entry, _ []zapcore.Field) error {
	_, err := fmt.Fprintf(c.to, "%s %-5s %s\n", store.Format(e.Time), e.Level.CapitalString(), display.Line(e.Message))
	return err
}

// sentence is a core that says a text of its own in place of a message.
type sentence struct {
	zapcore.Core

	text string
}

func (s sentence) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	e.Message = s.text
	return s.Core.Check(e, checked)
}

// slotsText is a run of slots from one to the time until, or the one.
func slotsText(first slots.Slot, until time.Time) string {
	switch {
	case !until.After(first.End):
		return slotText(first)
	case until.UTC().YearDay() == first.Start.UTC().YearDay() && until.Sub(first.Start) < 24*time.Hour:
		return "slots " + display.Clock(first.Start) + " to " + display.Clock(until)
	}
	return "slots " + store.Format(first.Start) + " to " + store.Format(until)
}

func slotText(slot slots.Slot) string { return "slot " + display.Clock(slot.Start) }
