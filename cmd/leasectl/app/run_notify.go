package app

import (
	"context"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/notify"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/supervise"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/transcript"
	"github.com/slotlease/slotlease/workerlease/event"
)

// notifyFlags adds --on-failure and its like.
func (a *app) notifyFlags(flags *pflag.FlagSet, to *map[notify.Event]string) {
	*to = map[notify.Event]string{}
	usages := map[notify.Event]string{
		notify.Failure: "tell a COMMAND, URL or @FILE of each run that failed",
		notify.Missed:  "… of each slot that was missed",
		notify.Success: "… of each run that succeeded",
		notify.GivenUp: "… of each slot whose last attempt failed",
	}
	for _, of := range notify.Events() {
		flags.Var(targetFlag{of, *to}, "on-"+string(of), usages[of])
	}
}

// targetFlag takes a target, which is read when all options are known: it may be in a file.
type targetFlag struct {
	of notify.Event
	to map[notify.Event]string
}

func (targetFlag) Type() string            { return "TARGET" }
func (targetFlag) String() string          { return "" }
func (f targetFlag) Set(text string) error { f.to[f.of] = text; return nil }

// targets reads what is to be told of what, hides the secrets in it, and notes its problems.
func (a *app) targets(ctx context.Context, given map[notify.Event]string) map[notify.Event]notify.Target {
	targets := map[notify.Event]notify.Target{}
	for _, of := range notify.Events() {
		text, ok := given[of]
		if !ok {
			continue
		}
		t, err := notify.Parse(ctx, text)
		if err != nil {
			a.bad("--on-%s: %w", of, err)
			continue
		}
		for _, hidden := range t.Secrets() {
			a.secrets.Hide(hidden)
		}
		targets[of] = t
	}
	return targets
}

// notifying lets targets be told what happens to the worker of a command. over waits, for a few seconds, until they are, or
// until the command would be killed at once.
func (a *app) notifying(targets map[notify.Event]notify.Target, log *runlog.Log, out *outlook, workerType string, command *supervise.Command) (over func()) {
	if len(targets) == 0 {
		return func() {}
	}
	stderr, _ := a.stderr.(*os.File)
	n := notify.New(notify.Options{
		Targets: targets, Env: command.Env, Stderr: stderr, Count: out.counting(workerType, targets),
		Output: command.Output.Newest,
		Failed: func(of notify.Event, to string, err error) { log.Untold("on-"+string(of), to, err) },
	})
	command.Observer = event.Observers(command.Observer, n)
	return func() { n.Close(command.Urgent) }
}

// keeping lets the output of a command go where an option says.
func keeping(to transcript.Where, log *runlog.Log, command *supervise.Command) {
	command.Output = transcript.New(to, log.OutputLost)
	if to.InFile() {
		command.Stdout, command.Stderr, command.Label = io.Discard, io.Discard, ""
	}
}

// checkOutput notes a file for output that can't be written.
func (a *app) checkOutput(to transcript.Where) {
	if err := transcript.Check(to); err != nil {
		a.bad("--output %q: %w", to, err)
	}
}
