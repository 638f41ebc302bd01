package fault

import (
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

// mostOfCheck bounds one check of an examination, and mostOfFirst that of the connection.
const (
	mostOfCheck = 3 * time.Second
	mostOfFirst = 10 * time.Second
)

// ends match what contexts say of their ends.
var ends = regexp.MustCompile(`(?:^|: )context (?:canceled|deadline exceeded)(?:: )?`)

// Exam collects what an examination finds.
type Exam struct {
	Clock clock.Clock
	// Scrub takes secrets out of texts; nil if there are none.
	Scrub func(text string) string
	Found []store.Finding
}

// Add adds a finding.
func (e *Exam) Add(f store.Finding) {
	if e.Scrub != nil {
		f.Text, f.Remedy = e.Scrub(f.Text), e.Scrub(f.Remedy)
	}
	f.Text, f.Remedy = OneLine(f.Text), OneLine(f.Remedy)
	e.Found = append(e.Found, f)
}

// OK adds what is as it should be.
func (e *Exam) OK(check, text string) {
	e.Add(store.Finding{Check: check, Level: store.LevelOK, Text: text})
}

// Skip adds checks that can't be made, with the reason.
func (e *Exam) Skip(why string, checks ...string) {
	for _, check := range checks {
		e.Add(store.Finding{Check: check, Level: store.LevelSkip, Text: why})
	}
}

// Failed adds the error of a check. One that ran out of time has found nothing, unless it is that of the
// connection.
func (e *Exam) Failed(check string, level store.Level, err error) {
	f := Failed(check, level, err)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		f.Text, f.Remedy = "no answer in time", ""
		if why := ends.ReplaceAllString(OneLine(err.Error()), ""); why != "" {
			f.Text += ": " + why
		}
		if check != store.CheckConnection {
			f.Level = store.LevelSkip
		}
	}
	e.Add(f)
}

// Flaws adds the flaws of a check, each of them; or that there is none.
func (e *Exam) Flaws(check string, level store.Level, flaws []Flaw, none string) {
	n := len(e.Found)
	for _, f := range flaws {
		if f.Check == check {
			e.Add(f.Finding(level))
		}
	}
	if len(e.Found) == n {
		e.OK(check, none)
	}
}

// First is a context for the check of the connection, without which there are no others: of what time is left
// it gets nine tenths, and 10 s at most.
func (e *Exam) First(ctx context.Context) (context.Context, context.CancelFunc) {
	left := e.left(ctx)
	return e.within(ctx, min(mostOfFirst, left*9/10))
}

// Part is a context for one other check: of what time is left it gets half, and 3 s at most. Who gives an examination
// minutes expects a slow store: then a check gets a fifth of them.
func (e *Exam) Part(ctx context.Context) (context.Context, context.CancelFunc) {
	left := e.left(ctx)
	return e.within(ctx, min(max(mostOfCheck, left/5), left/2))
}

// left is how much time is left: enough for each check, if there is no deadline.
func (e *Exam) left(ctx context.Context) time.Duration {
	if d, ok := ctx.Deadline(); ok {
		return d.Sub(e.Clock.Now())
	}
	return 5 * mostOfCheck
}

func (e *Exam) within(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := e.Clock.AfterFunc(max(most, time.Millisecond), func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { timer.Stop(); cancel(context.Canceled) }
}

// Since is how long ago a reading of the exam's clock was, for people.
func (e *Exam) Since(t time.Time) time.Duration {
	return e.Clock.Since(t).Round(10 * time.Microsecond)
}
