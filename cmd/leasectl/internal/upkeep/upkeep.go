// Package upkeep does what an operator does to a SQLite ledger as a whole: it copies it, or
// takes its time from the machine's clock anew.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/confirm"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
)

// opened calls act with the SQLite ledger of a target. What is missing isn't created.
func opened(ctx context.Context, t storeuri.Target, readOnly bool, what string, act func(l *sqlite.Ledger) error) (err error) {
	if !t.IsFile() {
		return exit.BadUsage("", fmt.Errorf("%s is for SQLite ledgers: %s is another store, which has its own means", what, place(t)))
	}
	if _, err := os.Stat(t.Path()); errors.Is(err, fs.ErrNotExist) {
		return advice.ForStore(t, fmt.Errorf("%s: %w", place(t), store.ErrMissing))
	}
	ledger, err := t.Open(ctx, readOnly)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return late(err, "nothing was done")
	case err != nil:
		return advice.ForStore(t, err)
	}
	defer func() { err = errors.Join(err, advice.ForStore(t, storeuri.Close(ctx, ledger))) }()
	l, ok := ledger.(*sqlite.Ledger)
	if !ok {
		return exit.With(exit.Failure, fmt.Errorf("%s is a %T", place(t), ledger))
	}
	return act(l)
}

// place is a store as it is shown on one line: a file may have any name.
func place(t storeuri.Target) string { return display.Flat(t.Place()) }

// Backup copies a ledger to a file that must not exist.
func Backup(ctx context.Context, t storeuri.Target, to string, result io.Writer) error {
	return opened(ctx, t, true, "leasectl backup", func(l *sqlite.Ledger) error {
		if err := l.Backup(ctx, to); err != nil {
			return notCopied(t, to, err)
		}
		if _, err := fmt.Fprintf(result, "copied the ledger %s to %s\n", place(t), display.Flat(to)); err != nil {
			return exit.With(exit.Failure, fmt.Errorf("the copy %s was made, but that can't be told: %w", to, err))
		}
		return nil
	})
}

// notCopied is the error of a backup. What is wrong with the copy isn't the ledger's fault.
func notCopied(t storeuri.Target, to string, err error) error {
	e, ofFile := errors.AsType[*fs.PathError](err)
	path, _ := filepath.Abs(to)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return late(err, fmt.Sprintf("perhaps the copy was made: if %s is there, it is whole; files with .part in their names are left over", to))
	case !ofFile || path == "" || !strings.HasPrefix(e.Path, path):
		return advice.ForStore(t, err)
	case errors.Is(e, fs.ErrInvalid):
		return exit.BadUsage("", fmt.Errorf("--to %s: a file beside a database has such a name: choose one that doesn't end in -wal, -shm or -journal", to))
	case errors.Is(e, fs.ErrExist) && e.Path == path:
		return uncopied("another file for --to", "%s exists: nothing is overwritten", to)
	case errors.Is(e, fs.ErrExist):
		return uncopied("another file for --to, or remove "+e.Path, "%s exists, and would be read as part of the copy %s: nothing was copied", e.Path, to)
	}
	try := ""
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		try = "create the directory " + filepath.Dir(path) + " first"
	}
	return uncopied(try, "the copy can't be written: %s: %w", to, e.Err)
}

// uncopied is the error of a copy that wasn't made, with what to try.
func uncopied(try, format string, args ...any) error {
	e := exit.With(exit.Failure, fmt.Errorf(format, args...))
	e.Try = try
	return e
}

// late is the error of an operation that took longer than it may.
func late(err error, so string) error {
	e := exit.With(exit.Unreachable, fmt.Errorf("%w; %s", err, so))
	e.Try = "a longer --timeout"
	return e
}

// Options of Reanchor.
type Options struct {
	Yes bool // don't ask
	// Ask asks the operator a question; nil if there is nobody to ask.
	Ask     func(question string) (string, error)
	Timeout time.Duration // of what comes before the question, and of what comes after it
}

// Reanchor shows what taking the time from the machine's clock changes, asks, and does it.
func Reanchor(ctx context.Context, t storeuri.Target, o Options, plan, result io.Writer) error {
	plan = display.Writer{To: plan}
	limited := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, o.Timeout) }
	looking, cancel := limited()
	defer cancel()
	right := false
	err := opened(looking, t, true, "leasectl reanchor", func(l *sqlite.Ledger) error {
		// What this finds amiss is what workers warn of. Errors are those of the plan as well.
		now, err := l.Now(looking)
		if right = err == nil && now.Server != "wall" && l.Warning() == ""; !right {
			return nil
		}
		if _, err := fmt.Fprintf(result, "store time is %s, which is the machine's clock to a second: there is nothing to do, and nothing was changed\n", store.Format(now.Time)); err != nil {
			return exit.With(exit.Failure, fmt.Errorf("there is nothing to do, but that can't be told: %w", err))
		}
		return nil
	})
	if right || err != nil {
		return err
	}
	return opened(looking, t, false, "leasectl reanchor", func(l *sqlite.Ledger) error {
		a, err := l.PlanReanchor(looking)
		if err != nil {
			return failure(t, err, "nothing was changed")
		}
		if _, err := io.WriteString(plan, text(a)); err != nil && !o.Yes {
			return exit.With(exit.Failure, fmt.Errorf("what would change can't be shown, so nothing was changed: %w", err))
		}
		if !o.Yes {
			if err := confirm.Ask(o.Ask, "take store time from the machine's clock?", "nothing was changed"); err != nil {
				return err
			}
		}
		writing, cancel := limited()
		defer cancel()
		if a, err = l.Reanchor(writing); err != nil {
			return failure(t, err, "perhaps it was done: run it again, which shows that")
		}
		if _, err = fmt.Fprintf(result, "store time was %s, and is %s now\n", store.Format(a.StoreTime), store.Format(a.WallTime)); err != nil {
			return exit.With(exit.Failure, fmt.Errorf("store time was %s, and is %s now, but that can't be told: %w", store.Format(a.StoreTime), store.Format(a.WallTime), err))
		}
		return nil
	})
}

// failure is the error of a re-anchoring, and what has become of it where that took too long.
func failure(t storeuri.Target, err error, so string) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return late(err, so)
	case errors.Is(err, sqlite.ErrInUse):
		return exit.With(exit.Failure, fmt.Errorf("%w; nothing was changed", err))
	case errors.Is(err, errors.ErrUnsupported):
		return exit.BadUsage("", err)
	}
	return advice.ForStore(t, err)
}

// text is what re-anchoring changes, and risks.
func text(a sqlite.Anchor) string {
	var b strings.Builder
	direction := "behind"
	if a.Apart() < 0 {
		direction = "ahead of"
	}
	if apart := a.Apart().Abs().Round(time.Millisecond); apart > time.Second {
		fmt.Fprintf(&b, "store time is %s, %v %s the machine's clock: %s\n", store.Format(a.StoreTime), apart, direction, store.Format(a.WallTime))
	} else {
		fmt.Fprintf(&b, "store time is %s, which is the machine's clock to a second, but it is uncertain, because that was set; this ends that\n", store.Format(a.StoreTime))
	}
	fmt.Fprintf(&b, "no worker uses the ledger, and no term is in force; from then on store time is the machine's clock\n")
	if a.Apart() < -time.Second {
		fmt.Fprintf(&b, "risk: store time is set back, so tokens of new leases may be lower than those of old ones\n")
	}
	for _, r := range a.Ahead {
		fmt.Fprintf(&b, "risk: nothing of %q is claimed before %s, because of record %d: if that is too long, run leasectl override afterwards\n", r.WorkerType, store.Format(r.WindowEnd), r.Seq)
	}
	for _, r := range a.Implausible {
		fmt.Fprintf(&b, "risk: record %d of %q is too far ahead of the machine's clock (it is for %s to %s), so workers don't obey it: nothing of %q is claimed until they have superseded it, which takes them some minutes, or as long as its window, up to a day\n",
			r.Seq, r.WorkerType, store.Format(r.WindowStart), store.Format(r.WindowEnd), r.WorkerType)
	}
	return b.String()
}
