package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

var _ store.Examiner = (*Ledger)(nil)

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
	e := &fault.Exam{Clock: l.o.Clock}
	state, err := l.examineFile(ctx, e)
	switch {
	case errors.Is(err, store.ErrClosed):
		return nil, err
	case err != nil:
		e.Skip("the file can't be looked at", CheckFileSystem, store.CheckAppend, store.CheckRead, store.CheckTrim, store.CheckRoster)
	default:
		l.examinePlace(ctx, e)
		l.examineRights(ctx, e)
	}
	if err != nil || state < isOutdated {
		e.Skip("there is no ledger to look into", CheckJournal, store.CheckConstraints, store.CheckServerClocks)
		return e.Found, nil
	}
	l.examineTables(ctx, e)
	l.examineClock(ctx, e)
	return e.Found, nil
}

// examineFile finds out what is at the path. The error says that nothing can be seen there.
func (l *Ledger) examineFile(ctx context.Context, e *fault.Exam) (state, error) {
	ctx, cancel := e.First(ctx)
	defer cancel()
	began := l.o.Clock.Now()
	_, err := examined(ctx, l, func(context.Context) (none struct{}, err error) {
		if _, err = stat(l.o.Path); errors.Is(err, fs.ErrNotExist) {
			_, err = stat(filepath.Dir(named(l.o.Path)))
		}
		return none, err
	})
	if err != nil {
		e.Failed(store.CheckConnection, store.LevelFail, err)
		e.Skip("the file can't be looked at", store.CheckLedger)
		return isMissing, err
	}
	found, err := examined(ctx, l, func(ctx context.Context) (state, error) { return inspect(ctx, l.o.Path, true) })
	if errors.Is(err, context.DeadlineExceeded) {
		e.Failed(store.CheckConnection, store.LevelFail, err)
		e.Skip("the file can't be looked at", store.CheckLedger)
		return isMissing, err
	}
	e.OK(store.CheckConnection, fmt.Sprintf("the file %s, looked at in %v", l.o.Path, e.Since(began)))
	switch {
	case errors.Is(err, store.ErrDenied):
		e.Skip("the file can't be read", store.CheckLedger)
	case err != nil:
		e.Failed(store.CheckLedger, store.LevelFail, err)
	case found < isOutdated:
		e.Add(fault.Flaw{Check: store.CheckLedger, What: "the file is missing or empty", Remedy: "leasectl init"}.Finding(store.LevelFail))
	case found == isOutdated:
		e.OK(store.CheckLedger, "written by an earlier version; the next worker adds what this one needs")
	default:
		e.OK(store.CheckLedger, fmt.Sprintf("the ledger is there (schema %d)", schemaVersion))
	}
	if err != nil {
		found = isMissing
	}
	return found, nil
}

// examined runs one look at the file.
func examined[T any](ctx context.Context, l *Ledger, look func(ctx context.Context) (T, error)) (T, error) {
	return attempt(ctx, l, patience{waits: &l.tailWaits, from: l.tailWaits.Load()}, look)
}

// examinePlace looks where the file is.
func (l *Ledger) examinePlace(ctx context.Context, e *fault.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	_, err := examined(ctx, l, func(context.Context) (struct{}, error) { return struct{}{}, fit(l.o.Path, false) })
	switch {
	case err == nil:
		e.OK(CheckFileSystem, "a file system of this machine")
	case l.o.UnsafeFileSystem && fit(l.o.Path, true) == nil:
		f := fault.Failed(CheckFileSystem, store.LevelWarn, err)
		f.Text += "; unsafeFileSystem accepts it"
		e.Add(f)
	default:
		e.Failed(CheckFileSystem, store.LevelFail, err)
	}
}

// examineRights asks the kernel for the rights of this process.
func (l *Ledger) examineRights(ctx context.Context, e *fault.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	type rights struct{ read, write error }
	r, err := examined(ctx, l, func(context.Context) (rights, error) {
		dir := filepath.Dir(l.target())
		write := l.missingRight(mayWrite, dir)
		if write == nil {
			write = fullDisk(dir)
		}
		return rights{l.missingRight(mayRead, ""), write}, nil
	})
	if err != nil {
		r = rights{err, err}
	}
	for _, c := range []struct {
		check   string
		level   store.Level
		missing error
		may     string
	}{
		{store.CheckAppend, store.LevelFail, r.write, "this user may write the file and its directory"},
		{store.CheckRead, store.LevelFail, r.read, "this user may read the file"},
		{store.CheckTrim, store.LevelFail, r.write, "as append-right"},
		{store.CheckRoster, store.LevelFail, r.write, "as append-right"},
	} {
		switch {
		case c.missing == nil:
			e.OK(c.check, c.may)
		case c.check == store.CheckTrim || c.check == store.CheckRoster:
			e.Skip("needs what append-right lacks", c.check)
		default:
			e.Failed(c.check, c.level, c.missing)
		}
	}
}

// target is the path with the symbolic links followed.
func (l *Ledger) target() string {
	if target, err := filepath.EvalSymlinks(l.o.Path); err == nil {
		return target
	}
	return named(l.o.Path) // It is missing.
}

// missingRight is the error of a right that is missing, by what asks for it: to the file, to those beside it, and
// to a directory, if one is given.
func (l *Ledger) missingRight(may func(path string) error, dir string) error {
	target := l.target()
	for _, path := range []string{target, target + "-wal", target + "-shm", target + "-journal", dir} {
		err := may(path)
		if path != "" && errors.Is(err, syscall.EROFS) {
			return fmt.Errorf("%w: %w", store.ErrDenied, fault.Flaw{
				What:   "the file system of " + path + " is mounted for reading only",
				Remedy: "mount it for writing; the log of the kernel says why it isn't, as after an error of the disk",
			})
		}
		if path != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
			verb := "write"
			if mayRead(path) != nil {
				verb = "read"
			}
			return fmt.Errorf("%w: %w", store.ErrDenied, fault.Flaw{
				What:   fmt.Sprintf("no right to %s %s (%v)", verb, path, err),
				Remedy: "run as the user of the workers, or give this user the right to the directory, the file and the two files beside it",
			})
		}
	}
	return nil
}

// fullDisk is an error if there is no room for a record, nor for what SQLite writes beside it.
func fullDisk(dir string) error {
	const least = 64 << 10
	free, known := room(dir)
	if !known || free >= least {
		return nil
	}
	return fault.Flaw{
		What:   fmt.Sprintf("the disk is full: %d bytes are free in %s", free, dir),
		Remedy: "free space on that disk: workers go on by themselves then",
	}
}

// tables are what a look at the tables finds.
type tables struct {
	mode string
	flaw error
}

// examineTables looks for what keeps records out, and at the journal.
func (l *Ledger) examineTables(ctx context.Context, e *fault.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	found, err := examined(ctx, l, func(ctx context.Context) (t tables, err error) {
		f, err := openFile(ctx, l.o.Path, true)
		if err != nil {
			return t, err
		}
		defer func() { _ = f.close() }()
		if !f.reading.alone() { // SQLite doesn't look at the mode of a file that it takes for unchanging.
			err = f.db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&t.mode)
		}
		if err == nil {
			_, err = intruder(ctx, f.db)
		}
		if errors.Is(err, store.ErrRefused) {
			t.flaw, err = err, nil
		}
		return t, f.reading.check(err)
	})
	if err != nil {
		e.Failed(CheckJournal, store.LevelFail, err)
		e.Failed(store.CheckConstraints, store.LevelFail, err)
		return
	}
	switch found.mode {
	case "wal":
		e.OK(CheckJournal, "WAL, and workers sync each append to the disk (synchronous=FULL)")
	case "":
		e.Skip("shown only to a user that may write, or while the file is in use", CheckJournal)
	default:
		e.Add(fault.Flaw{
			Check: CheckJournal, What: fmt.Sprintf("the journal mode is %.20s, not WAL: another program has changed it", found.mode),
			Remedy: "leasectl init sets it again, as the next worker does; let no other program write the file",
		}.Finding(store.LevelWarn))
	}
	if found.flaw != nil {
		e.Failed(store.CheckConstraints, store.LevelFail, found.flaw)
		return
	}
	e.OK(store.CheckConstraints, "the tables are a ledger's, without triggers or other indexes")
}

// examineClock says what is wrong with the time of the ledger. A handle that has no time line yet would choose
// one, and store that.
func (l *Ledger) examineClock(ctx context.Context, e *fault.Exam) {
	if !l.o.ReadOnly && l.line.Load() == nil {
		e.Skip("this handle has not read the time yet", store.CheckServerClocks)
		return
	}
	ctx, cancel := e.Part(ctx)
	defer cancel()
	if _, err := l.Now(ctx); err != nil {
		e.Failed(store.CheckServerClocks, store.LevelFail, err)
		return
	}
	e.Flaws(store.CheckServerClocks, store.LevelWarn, l.clockFlaws(), "the boot clock of this machine, the same for all its workers")
}
