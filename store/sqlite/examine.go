package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone.
const (
	// CheckFileSystem: all workers can share the file, and its log.
	CheckFileSystem = "file-system"
	// CheckJournal: the file is in WAL mode, in which each append is synced to the disk.
	CheckJournal = "journal"
)

// Examine examines a file that Open may refuse, as Ledger.Examine does. It creates and changes nothing. The
// error is one of options that are wrong.
func Examine(ctx context.Context, o Options) ([]store.Finding, error) {
	o.ReadOnly = true
	l, err := prepare(o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close(ctx) }() // It was only read; a disk that hangs isn't waited for.
	return l.Examine(ctx)
}

// Examine looks at the file, its directory and its tables. It opens the file for reading only.
func (l *Ledger) Examine(ctx context.Context) ([]store.Finding, error) {
	if err := l.begin(); err != nil {
		return nil, err
	}
	defer l.calls.Done()
	checks := storekit.Checks{
		Rows:   l.checks(),
		Runner: storekit.NewRunner(storekit.RunnerOptions{Store: "sqlite", Clock: l.o.Clock}),
		Clock:  l.o.Clock,
	}
	return checks.Examine(ctx)
}

// checks is the table of what is found out of a file. The rows need no open handle.
func (l *Ledger) checks() []storekit.Check {
	return []storekit.Check{
		{Name: store.CheckConnection, Level: store.LevelFail, Ask: l.askFile, Needed: "the file can't be looked at"},
		{Name: CheckFileSystem, Level: store.LevelFail, Ask: l.askPlace},
		{Name: store.CheckAppend, Level: store.LevelFail, Ask: l.askWriting},
		{Name: store.CheckRead, Level: store.LevelFail, Ask: l.askReading},
		{Name: store.CheckTrim, Level: store.LevelFail, Ask: l.askAsAppend},
		{Name: store.CheckRoster, Level: store.LevelFail, Ask: l.askAsAppend},
		{Name: store.CheckLedger, Level: store.LevelFail, Ask: l.askLedger, Needed: "there is no ledger to look into", Slow: true},
		{Name: CheckJournal, Level: store.LevelFail, Ask: l.askJournal},
		{Name: store.CheckConstraints, Level: store.LevelFail, Ask: l.askTables},
		{Name: store.CheckServerClocks, Level: store.LevelFail, Ask: l.askClock},
	}
}

// looked is one look at the file, repeated while another process changes it.
func (l *Ledger) looked(ctx context.Context, look func() error) error {
	err := l.patiently(ctx, patience{waits: new(atomic.Int64)}, look)
	if err != nil {
		err = l.advise(l.explain(ctx, err))
	}
	return err
}

func (l *Ledger) askFile(ctx context.Context) (string, error) {
	err := l.looked(ctx, func() error {
		_, err := stat(l.o.Path)
		if errors.Is(err, fs.ErrNotExist) {
			_, err = stat(filepath.Dir(named(l.o.Path)))
		}
		return err
	})
	return fmt.Sprintf("the file %s, looked at", l.o.Path), err
}

func (l *Ledger) askPlace(context.Context) (string, error) {
	err := fit(l.o.Path, false)
	if flaw, ok := errors.AsType[storekit.Flaw](err); ok && l.o.UnsafeFileSystem && fit(l.o.Path, true) == nil {
		flaw.Level, flaw.What = store.LevelWarn, flaw.What+"; unsafeFileSystem accepts it"
		err = storekit.Flaws{flaw}
	}
	return "a file system of this machine", err
}

// askWriting asks the kernel for the rights of this process.
func (l *Ledger) askWriting(context.Context) (string, error) {
	dir := filepath.Dir(l.target())
	flaw, found, _ := l.missingRight(mayWrite, dir)
	if !found {
		flaw, found = fullDisk(dir)
	}
	if found {
		flaw.Check = store.CheckAppend
		return storekit.Found("", flaw)
	}
	return "this user may write the file and its directory", nil
}

func (l *Ledger) askReading(context.Context) (string, error) {
	if flaw, found, _ := l.missingRight(mayRead, ""); found {
		flaw.Check = store.CheckRead
		return storekit.Found("", flaw)
	}
	return "this user may read the file", nil
}

func (l *Ledger) askAsAppend(ctx context.Context) (string, error) {
	if _, err := l.askWriting(ctx); err != nil {
		return "", storekit.Skip("needs what append-right lacks")
	}
	return "as append-right", nil
}

func (l *Ledger) askLedger(ctx context.Context) (string, error) {
	var found state
	err := l.looked(ctx, func() (err error) {
		found, err = inspect(ctx, l.o.Path, true)
		return err
	})
	switch {
	case errors.Is(err, store.ErrDenied):
		return "", storekit.Skip("the file can't be read")
	case err != nil:
		return "", err
	case found < isLedger:
		return storekit.Found("", storekit.Flaw{Check: store.CheckLedger, What: "the file is missing or empty", Remedy: "leasectl init"})
	}
	return fmt.Sprintf("the ledger is there (schema %d)", schemaVersion), nil
}

// opened opens the file for one look.
func (l *Ledger) opened(ctx context.Context, look func(f *file) error) error {
	return l.looked(ctx, func() error {
		f, err := openFile(ctx, l.o.Path, true)
		if err != nil {
			return err
		}
		defer func() { _ = f.close() }()
		return f.reading.check(look(f))
	})
}

func (l *Ledger) askJournal(ctx context.Context) (string, error) {
	var mode string
	err := l.opened(ctx, func(f *file) error {
		if f.reading.alone() { // SQLite doesn't look at the mode of a file that it takes for unchanging.
			return storekit.Skip("shown only to a user that may write, or while the file is in use")
		}
		return f.db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode)
	})
	if err == nil && mode != "wal" {
		return storekit.Found("", storekit.Flaw{
			Check: CheckJournal, Level: store.LevelWarn, What: fmt.Sprintf("the journal mode is %.20s, not WAL: another program has changed it", mode),
			Remedy: "leasectl init sets it again, as the next worker does; let no other program write the file",
		})
	}
	return "WAL, and workers sync each append to the disk (synchronous=FULL)", err
}

// askTables looks for what keeps records out.
func (l *Ledger) askTables(ctx context.Context) (string, error) {
	err := l.opened(ctx, func(f *file) error {
		_, err := intruder(ctx, f.db)
		return err
	})
	return "the tables are a ledger's, without triggers or other indexes", err
}

// askClock says what is wrong with the time of the ledger. A handle that has no time line yet would choose
// one, and store that.
func (l *Ledger) askClock(ctx context.Context) (string, error) {
	if !l.o.ReadOnly && l.line.Load() == nil {
		return "", storekit.Skip("this handle has not read the time yet")
	}
	if _, err := l.Now(ctx); err != nil {
		return "", err
	}
	flaws := l.clockFlaws()
	for i := range flaws {
		flaws[i].Level = store.LevelWarn // A clock that can't be read is worse.
	}
	return storekit.Found("the boot clock of this machine, the same for all its workers", flaws...)
}
