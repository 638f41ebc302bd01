package sqlite

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/terms"
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

func TestALineThatMayBeTheSecondOfItsBootIsWidenedWhileTermsMayLast(t *testing.T) {
	for _, set := range []time.Duration{5 * time.Second, -5 * time.Second, 2 * time.Minute, -time.Hour} {
		_, second, c := containers(t, set, func(path string) {
			must(t, "Append()", open(t, Options{Path: path}).Append(t.Context(), storetest.Grant("job", 1)))
		})
		end := storetest.Grant("job", 1).WindowEnd
		for _, at := range []time.Time{c.Mock.Now(), end.Add(set.Abs() - time.Millisecond)} {
			pass(c, at)
			if got := now(t, second); got.Skew != set.Abs() {
				t.Errorf("stamp at %v, after the clock was set by %v: %+v, want a skew of that", at, set, got)
			}
		}
		pass(c, end.Add(set.Abs()+time.Second))
		documenttest.Equal(t, "skew when all terms are over by both lines", now(t, second).Skew, 0)
		documenttest.Equal(t, "skew of another handle", now(t, open(t, Options{Path: second.o.Path, Clock: c, BootID: "second"})).Skew, 0)
	}
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

// No clock shows such a time, and no doubt lasts that long.
func TestForeignTimeLinesOutOfBoundsDoNoHarm(t *testing.T) {
	first, second, c := containers(t, 0, nil)
	want := now(t, first)
	execute(t, raw(t, first.o.Path), `UPDATE Boot SET skew = 1000000, unsureUntil = `+strconv.FormatInt(c.Mock.Now().Add(terms.Longest+time.Millisecond).UnixMilli(), 10),
		`INSERT INTO Boot (id, wallOffset, madeAt) VALUES ('second', 9223372036854775807, 0), ('third', -9223372036854775808, 0), ('fourth', 5000000000000000, 0)`)
	for _, l := range []*Ledger{first, second, open(t, Options{Path: first.o.Path, Clock: c, BootID: "fourth"})} {
		documenttest.Equal(t, "stamp of "+l.o.BootID, strings.Replace(fmt.Sprint(now(t, l)), l.o.BootID, "first", 1), fmt.Sprint(want))
	}
	execute(t, raw(t, first.o.Path), `UPDATE Boot SET madeAt = -9223372036854775808, skew = 9223372036854775807, unsureUntil = 9223372036854775807`)
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

// A process may come back to the line of its boot id when others have used another one since, by
// which a command may still work. By the earlier line its term would be over too soon.
func TestALineThatIsTakenUpAgainIsWidenedWhileTermsMayLastByAnother(t *testing.T) {
	for _, set := range []time.Duration{-5 * time.Second, 5 * time.Second} {
		first, second, c := containers(t, set, nil)
		must(t, "Close()", first.Close(t.Context()))
		now(t, second)
		must(t, "Append()", second.Append(t.Context(), storetest.Grant("job", 1)))
		must(t, "Close()", second.Close(t.Context()))
		c.Mock.Add(-set) // so that a third container takes the first line, too
		end := storetest.Grant("job", 1).WindowEnd
		for _, id := range []string{"first", "third"} {
			for _, readOnly := range []bool{true, false} {
				l := open(t, Options{Path: first.o.Path, Clock: c, BootID: id, ReadOnly: readOnly})
				for range 2 {
					if got := now(t, l); got.Skew != set.Abs() || !got.Time.Equal(c.Mock.Now()) {
						t.Errorf("stamp of %s after the clock was set by %v: %+v, want the first line with a skew of that", id, set, got)
					}
				}
			}
		}
		pass(c, end.Add(set.Abs()+time.Second))
		for _, id := range []string{"first", "third", "fourth"} {
			documenttest.Equal(t, "skew of "+id+" when the term is over by both lines", now(t, open(t, Options{Path: first.o.Path, Clock: c, BootID: id})).Skew, 0)
		}
	}
}

// A boot later the clocks show the same, so this can't be told from one. What makes it bearable is in
// the package documentation: nothing works on without its worker, and tokens go up.
func TestAClockThatIsSetForwardByMoreThanTheMachineHadRunIsTakenForAnotherBoot(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{3*time.Minute - time.Microsecond: 3*time.Minute - time.Microsecond, 3 * time.Minute: 0, 56 * 365 * 24 * time.Hour: 0} {
		term := storetest.Grant("job", 1)
		_, second, c := containers(t, set, func(path string) {
			must(t, "Append()", open(t, Options{Path: path}).Append(t.Context(), term))
		})
		got := now(t, second)
		if got.Skew != want || !got.Time.Equal(c.Mock.Now()) || got.Time.UnixMilli() <= term.Token {
			t.Errorf("stamp after the clock was set by %v: %+v, want the wall clock's %v, a skew of %v, and higher tokens than %d", set, got, c.Mock.Now(), want, term.Token)
		}
	}
}
