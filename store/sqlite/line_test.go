package sqlite

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// containers are two handles on one ledger, with a boot id each and the boot clock of one
// machine, whose wall clock is set by some time in between.
func containers(t *testing.T, set time.Duration, between func(path string)) (first, second *Ledger, c *booted) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	c = bootedAt(storetest.Grant("job", 1).WindowStart.Add(time.Minute), 3*time.Minute, 0)
	first = open(t, Options{Path: path, Clock: c, BootID: "first"})
	now(t, first)
	if between != nil {
		between(path)
	}
	c.Mock.Add(set)
	return first, open(t, Options{Path: path, Clock: c, BootID: "second"}), c
}

func TestContainersOfOneBootHaveOneTimeThoughTheClockWasStepped(t *testing.T) {
	for _, set := range []time.Duration{0, 400 * time.Millisecond, -time.Second, time.Second} {
		first, second, _ := containers(t, set, nil)
		a, b := now(t, first), now(t, second)
		if !a.Time.Equal(b.Time) || a.Skew != 0 || b.Skew != 0 {
			t.Errorf("stamps after the clock was set by %v: %+v and %+v, want the same time without skew", set, a, b)
		}
	}
}

// wantDoubt demands that a worker has no store time until a lease is over, and that a reader says so.
func wantDoubt(t *testing.T, what string, o Options, apart time.Duration, parts ...string) {
	t.Helper()
	parts = append(parts, "store time is in doubt for ", "DELETE FROM Boot WHERE wallOffset = ")
	_, err := open(t, o).Now(t.Context())
	documenttest.Says(t, what+": Now()", err, nil, parts...)
	o.ReadOnly = true
	reader := open(t, o)
	if got := now(t, reader); got.Skew != apart {
		t.Errorf("%s: stamp of a reader = %+v, want a skew of %v", what, got, apart)
	}
	documenttest.Says(t, what+": Warning() of a reader", textError(reader.Warning()), nil, parts...)
}

// wantLine demands a time that is so far ahead of the wall clock, without a skew, and no doubt.
func wantLine(t *testing.T, what string, o Options, ahead time.Duration) *Ledger {
	t.Helper()
	reader := o
	reader.ReadOnly = true
	for _, l := range []*Ledger{open(t, o), open(t, reader)} {
		if got, want := now(t, l), o.Clock.(*booted).Mock.Now().Add(ahead).Truncate(time.Microsecond); got.Skew != 0 || !got.Time.Equal(want) {
			t.Errorf("%s: stamp = %+v, want %v", what, got, want)
		}
		documenttest.Equal(t, what+": Warning()", l.Warning() != "", ahead.Abs() > noticed)
	}
	return open(t, o)
}

func TestWhileATermMayBeInForceByALineOfTheBootItIsTakenOrWaitedFor(t *testing.T) {
	term := storetest.Grant("job", 1)
	for set, adopted := range map[time.Duration]bool{
		5 * time.Second: true, -5 * time.Second: true, 2 * time.Minute: true, -adoptable: true, -adoptable - time.Microsecond: false, -time.Hour: false, -365 * 24 * time.Hour: false,
	} {
		what := fmt.Sprint("after the clock was set by ", set)
		first, second, c := containers(t, set, func(path string) {
			must(t, "Append()", open(t, Options{Path: path}).Append(t.Context(), term))
		})
		if adopted {
			now(t, wantLine(t, what, second.o, -set))
			now(t, first)
			continue
		}
		says := fmt.Sprintf(`by the time of boot id first, which is %v ahead of the machine's clock, the lease of "job" in record 1 may be in force`, set.Abs().Round(time.Millisecond))
		wantDoubt(t, what, second.o, set.Abs(), says, "until "+store.Format(term.WindowEnd.Add(set)))
		pass(c, term.WindowEnd.Add(set-time.Millisecond))
		wantDoubt(t, what, second.o, set.Abs(), says, "for 1ms,")
		pass(c, term.WindowEnd.Add(set))
		for _, id := range []string{"second", "first", "third"} {
			wantLine(t, what+", when it is over, by "+id, Options{Path: second.o.Path, Clock: c, BootID: id}, 0)
		}
		documenttest.Equal(t, "lines", asked[int64](t, second.o.Path, `SELECT count(DISTINCT wallOffset) FROM Boot`), 1)
	}
}

// The machine that a file has come to shows another time by the line of the first.
func TestALineOfAnotherMachineIsNotTakenForOneOfThisBoot(t *testing.T) {
	const day = 24 * time.Hour
	at := noon.Truncate(time.Millisecond)
	for what, c := range map[string]struct {
		window, longer time.Duration // of the term, and how much longer the second machine has run
		doubt          bool
		ahead          time.Duration
	}{
		"a machine that has run for less":       {window: day, longer: -12 * time.Hour},
		"one that has run for a little less":    {window: day, longer: -4 * time.Minute},
		"one that has run for more":             {window: time.Hour, longer: 12 * time.Hour},
		"one that has run for a little more":    {window: day, longer: 4 * time.Minute, ahead: 4 * time.Minute},
		"one that has run for more, long terms": {window: 30 * day, longer: 12 * time.Hour, doubt: true},
	} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		one := Options{Path: path, Clock: bootedAt(at, 10*day, 0), BootID: "one"}
		l := open(t, one)
		now(t, l)
		term := granted(1, at, c.window)
		term.ReadAt = at
		must(t, "Append()", l.Append(t.Context(), term))
		must(t, "Close()", l.Close(t.Context()))
		two := Options{Path: path, Clock: bootedAt(at.Add(time.Minute), 10*day+time.Minute+c.longer, 0), BootID: "two"}
		if c.doubt {
			wantDoubt(t, what, two, c.longer, "ahead of the machine's clock")
			continue
		}
		l = wantLine(t, what, two, c.ahead)
		if c.ahead > 0 {
			continue
		}
		later := now(t, l).Time.Truncate(time.Millisecond)
		release := ended(term, store.KindRelease)
		release.ReadAt = later
		must(t, "Append()", l.Append(t.Context(), release))
		must(t, "Close()", l.Close(t.Context()))
		// Back on the first machine, whose line is late: no time that is before what was written.
		back := open(t, Options{Path: path, Clock: bootedAt(later.Add(time.Minute), 10*day+10*time.Second, 0), BootID: "one"})
		if got := now(t, back); got.Time.Before(later.Add(-sameBoot)) {
			t.Errorf("%s: stamp of the first machine = %+v, want none before %v", what, got, later)
		}
	}
}

// The first machine's clock was hours behind when the ledger was first used there, and the second's is a little ahead.
func TestAFileThatComesBackFromAMachineWhoseClockIsAheadTurnsNoTimeBack(t *testing.T) {
	for _, ahead := range []time.Duration{-2 * time.Second, 2 * time.Second, 9 * time.Minute} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		at := noon.Truncate(time.Millisecond)
		use := func(l *Ledger, seq int64) (read time.Time) {
			t.Helper()
			read = now(t, l).Time.Truncate(time.Millisecond)
			r := granted(seq, read, time.Minute)
			r.ReadAt = read
			must(t, "Append()", l.Append(t.Context(), r))
			must(t, "Close()", l.Close(t.Context()))
			return read
		}
		use(open(t, Options{Path: path, Clock: bootedAt(at.Add(-5*time.Hour), time.Minute, 0), BootID: "one"}), 1)
		written := use(open(t, Options{Path: path, Clock: bootedAt(at.Add(time.Hour+ahead), 30*time.Minute, 0), BootID: "two"}), 2)
		documenttest.Equal(t, "rows", asked[int64](t, path, `SELECT count(*) FROM Boot`), 2)
		back := now(t, open(t, Options{Path: path, Clock: bootedAt(at.Add(time.Hour+time.Second), time.Hour+time.Minute+time.Second, 0), BootID: "one"})).Time
		if back.Before(written.Add(-ahead.Abs() - sameBoot)) {
			t.Errorf("stamp on the first machine, after one whose clock is %v ahead = %v, want none so long before %v", ahead, back, written)
		}
	}
}

// No worker has used it there yet, whose first use removes the line of the machine that it comes from.
func TestTheTimeOfTheMachineThatAFileComesFromIsNeitherWarnedOfNorInUse(t *testing.T) {
	const day = 24 * time.Hour
	path := filepath.Join(t.TempDir(), "ledger.db")
	c := bootedAt(noon.Truncate(time.Millisecond), 10*day, 0)
	l := open(t, Options{Path: path, Clock: c, BootID: "one"})
	now(t, l)
	for seq := range int64(8) {
		r := granted(seq+1, c.Mock.Now(), day)
		r.ReadAt, r.Claim, r.Token = r.WindowStart, fmt.Sprint("claim ", seq), r.WindowStart.UnixMilli()
		must(t, "Append()", l.Append(t.Context(), r))
		pass(c, r.WindowEnd)
	}
	must(t, "Close()", l.Close(t.Context()))
	pass(c, c.Mock.Now().Add(time.Hour))
	c.since -= 5 * day // The second machine was started later than the first, and before the ledger was used on that.
	o := Options{Path: path, Clock: c, BootID: "two"}
	reader := o
	reader.ReadOnly = true
	l = open(t, reader)
	documenttest.Equal(t, "stamp of a reader", now(t, l).Time, c.Mock.Now())
	documenttest.Equal(t, "Warning() of a reader", l.Warning(), "")
	a, err := open(t, o).PlanReanchor(t.Context())
	must(t, "PlanReanchor()", err)
	documenttest.Equal(t, "how far the clock is ahead", a.Apart(), 0)
}

// pass has time pass on both clocks.
func pass(c *booted, until time.Time) {
	d := until.Sub(c.Mock.Now())
	c.Mock.Add(d)
	c.since += d
}

func TestANewLineIsExactIfNothingSpeaksAgainstIt(t *testing.T) {
	t.Run("no terms", func(t *testing.T) {
		_, second, c := containers(t, 5*time.Second, nil)
		if got := now(t, second); got.Skew != 0 || !got.Time.Equal(c.Mock.Now()) {
			t.Errorf("stamp = %+v, want the wall clock's %v", got, c.Mock.Now())
		}
	})
	t.Run("a boot later", func(t *testing.T) {
		for _, since := range []time.Duration{time.Second, 2 * time.Minute, 24 * time.Hour} {
			_, second, c := containers(t, 0, func(path string) {
				must(t, "Append()", open(t, Options{Path: path}).Append(t.Context(), storetest.Grant("job", 1)))
			})
			c.Mock.Add(time.Minute + since)
			c.since = since
			if got := now(t, second); got.Skew != 0 || !got.Time.Equal(c.Mock.Now()) {
				t.Errorf("stamp %v into the next boot = %+v, want the wall clock's %v", since, got, c.Mock.Now())
			}
		}
	})
	t.Run("a boot id that doesn't change", func(t *testing.T) {
		first, _, c := containers(t, 0, nil)
		c.Mock.Add(time.Hour)
		c.since = time.Minute
		again := open(t, Options{Path: first.o.Path, Clock: c, BootID: "first"})
		if got := now(t, again); !got.Time.Equal(c.Mock.Now()) {
			t.Errorf("stamp in the next boot = %+v, want the wall clock's %v", got, c.Mock.Now())
		}
	})
}

func TestAFileOfAnEarlierVersionGetsTheColumnsOfLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	c := bootedAt(noon, time.Hour, 0)
	must(t, "Init()", open(t, Options{Path: path}).Init(t.Context()))
	execute(t, raw(t, path), `INSERT INTO Boot (id, wallOffset) VALUES ('earlier', `+strconv.FormatInt(noon.Add(-time.Hour).Add(300*time.Millisecond).UnixMicro(), 10)+`)`)
	l := open(t, Options{Path: path, Clock: c, BootID: "now"})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	want := now(t, open(t, Options{Path: path, Clock: c, BootID: "earlier"})).Time
	documenttest.Equal(t, "stamp", now(t, l).Time, want)
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 2)))
	execute(t, raw(t, path), `INSERT OR IGNORE INTO Boot (id, wallOffset) VALUES ('earlier still', 7)`)
}

func TestAnAppendByATimeThatWasChangedIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path, Clock: bootedAt(noon, time.Hour, 0), BootID: "b"})
	now(t, l)
	execute(t, raw(t, path), `UPDATE Boot SET wallOffset = wallOffset + 1`)
	documenttest.Says(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)), errReanchored, "re-anchored")
	_, err := l.Now(t.Context())
	documenttest.Says(t, "Now()", err, errReanchored, "re-anchored")
	must(t, "Append() by a handle that doesn't know the time", open(t, Options{Path: path}).Append(t.Context(), storetest.Grant("job", 1)))
}

// No clock shows such a time.
func TestForeignTimeLinesOutOfBoundsDoNoHarm(t *testing.T) {
	first, second, c := containers(t, 0, nil)
	want := now(t, first)
	execute(t, raw(t, first.o.Path), `INSERT INTO Boot (id, wallOffset, madeAt) VALUES ('second', 9223372036854775807, 0), ('third', -9223372036854775808, 0), ('fourth', 5000000000000000, 0)`)
	for _, l := range []*Ledger{first, second, open(t, Options{Path: first.o.Path, Clock: c, BootID: "fourth"})} {
		documenttest.Equal(t, "stamp of "+l.o.BootID, strings.Replace(fmt.Sprint(now(t, l)), l.o.BootID, "first", 1), fmt.Sprint(want))
	}
	execute(t, raw(t, first.o.Path), `UPDATE Boot SET madeAt = -9223372036854775808`)
	documenttest.Equal(t, "stamp", now(t, first), want)
}

func TestForeignColumnsOfTheTableOfTimeLinesDoNoHarm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	c := bootedAt(noon, time.Hour, 0)
	l := open(t, Options{Path: path, Clock: c, BootID: "b"})
	must(t, "Init()", l.Init(t.Context()))
	execute(t, raw(t, path), `ALTER TABLE Boot ADD COLUMN note TEXT NOT NULL DEFAULT 'ours'`)
	want := now(t, l).Time
	execute(t, raw(t, path), `ALTER TABLE Boot ADD COLUMN data BLOB DEFAULT x'00'`)
	for _, readOnly := range []bool{false, true} {
		documenttest.Equal(t, "stamp", now(t, open(t, Options{Path: path, Clock: c, BootID: "b", ReadOnly: readOnly})).Time, want)
	}
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
}

// A process may come back, with its boot id, when others have used another line since, by which a command may still work.
func TestAProcessThatReturnsTakesTheLineThatWasInUseSince(t *testing.T) {
	for _, set := range []time.Duration{-5 * time.Second, 5 * time.Second} {
		first, second, c := containers(t, set, nil)
		must(t, "Close()", first.Close(t.Context()))
		now(t, second)
		must(t, "Append()", second.Append(t.Context(), storetest.Grant("job", 1)))
		must(t, "Close()", second.Close(t.Context()))
		c.Mock.Add(-set)
		for _, id := range []string{"first", "third"} {
			wantLine(t, fmt.Sprintf("%s after the clock was set by %v", id, set), Options{Path: first.o.Path, Clock: c, BootID: id}, set)
		}
	}
}

// A boot later the clocks show the same, so this can't be told from one. What makes it bearable is in
// the package documentation: nothing works on without its worker, and tokens go up.
func TestAClockThatIsSetForwardByMoreThanTheMachineHadRunIsTakenForAnotherBoot(t *testing.T) {
	for set, other := range map[time.Duration]bool{3*time.Minute - time.Microsecond: false, 3 * time.Minute: true, 56 * 365 * 24 * time.Hour: true} {
		term := storetest.Grant("job", 1)
		_, second, _ := containers(t, set, func(path string) {
			must(t, "Append()", open(t, Options{Path: path}).Append(t.Context(), term))
		})
		ahead := -set
		if other {
			ahead = 0
		}
		got := now(t, wantLine(t, fmt.Sprint("after the clock was set by ", set), second.o, ahead))
		if got.Time.UnixMilli() <= term.Token {
			t.Errorf("stamp after the clock was set by %v: %+v, want higher tokens than %d", set, got, term.Token)
		}
	}
}
