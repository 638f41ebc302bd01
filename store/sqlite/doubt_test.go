package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// counts reports whether the first line is taken for a term by it.
func counts(t *testing.T, second *Ledger, c *booted) bool {
	t.Helper()
	return !now(t, second).Time.Equal(c.Mock.Now())
}

// Workers ignore it, so the command of the term below it works on.
func TestAnOverrideOrReleaseThatWorkersTakeForPoisonEndsNoTerm(t *testing.T) {
	far := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	term := storetest.Grant("job", 1)
	for _, kind := range []store.Kind{store.KindOverride, store.KindRelease} {
		foreign := ended(term, kind)
		foreign.WindowStart, foreign.WindowEnd, foreign.Token = far, far, far.UnixMilli()
		add := func(l *Ledger) {
			for _, r := range []store.Record{term, foreign} {
				must(t, "Append()", l.Append(t.Context(), r))
			}
		}
		_, second, c := containers(t, 5*time.Second, func(path string) { add(open(t, Options{Path: path})) })
		documenttest.Equal(t, string(kind)+": the term counts", counts(t, second, c), true)
		l, _ := wrong(t, term.WindowStart.Add(time.Minute+2*time.Hour), -2*time.Hour)
		add(l)
		_, err := l.Reanchor(t.Context())
		documenttest.Says(t, string(kind)+": Reanchor()", err, ErrInUse, `"job" until `+store.Format(term.WindowEnd))
	}
}

// Each contradicts the term below it, whose holder works on.
func TestAForeignEndOfATermEndsNone(t *testing.T) {
	term := storetest.Grant("job", 1)
	end := func(kind store.Kind, change func(r *store.Record)) store.Record {
		r := ended(term, kind)
		change(&r)
		return r
	}
	for what, foreign := range map[string]store.Record{
		"a release of another token":    end(store.KindRelease, func(r *store.Record) { r.Token-- }),
		"a release for a group":         end(store.KindRelease, func(r *store.Record) { r.Group = "eu" }),
		"a release from its token on":   end(store.KindRelease, func(r *store.Record) { r.WindowStart, r.WindowEnd = term.WindowStart, term.WindowStart }),
		"an override of the same token": end(store.KindOverride, func(r *store.Record) { r.Token = term.Token }),
		"an override with its claim":    end(store.KindOverride, func(r *store.Record) { r.Claim = term.Claim }),
	} {
		_, second, c := containers(t, 5*time.Second, func(path string) {
			l := open(t, Options{Path: path})
			for _, r := range []store.Record{term, foreign} {
				must(t, "Append()", l.Append(t.Context(), r))
			}
		})
		documenttest.Equal(t, what+": the term counts", counts(t, second, c), true)
		_, err := second.Reanchor(t.Context())
		documenttest.Says(t, what+": Reanchor()", err, ErrInUse, `"job" until `+store.Format(term.WindowEnd))
	}
}

// Workers treat the foreign grant as poison, and have superseded it.
func TestAForeignGrantThatContradictsATermLeavesNoDoubt(t *testing.T) {
	term, next := storetest.Grant("job", 1), storetest.Grant("job", 4)
	foreign := granted(2, term.WindowStart.Add(time.Minute), 300*24*time.Hour)
	reset := storetest.Grant("job", 3)
	reset.Kind, reset.WindowEnd = store.KindReset, reset.WindowStart
	for what, over := range map[string]bool{"while the term below lasts": false, "when it is over": true} {
		_, second, c := containers(t, 5*time.Second, func(path string) {
			l := open(t, Options{Path: path})
			for _, r := range []store.Record{term, foreign, reset, next} {
				must(t, "Append()", l.Append(t.Context(), r))
			}
		})
		if over {
			pass(c, next.WindowEnd.Add(time.Hour))
		}
		documenttest.Equal(t, what+": it counts", counts(t, second, c), !over)
		_, err := second.Reanchor(t.Context())
		documenttest.Equal(t, what+": in use", errors.Is(err, ErrInUse), !over)
	}
}

// By the holder's line the override is an hour ahead, so the holder works on. By the next line it is
// not ahead.
func TestPoisonIsJudgedByTheLineOfTheTerm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	c := bootedAt(noon, 40*24*time.Hour, 0)
	first := open(t, Options{Path: path, Clock: c, BootID: "first"})
	now(t, first)
	term := granted(1, noon, 6*time.Hour)
	foreign := ended(term, store.KindOverride)
	foreign.WindowStart, foreign.WindowEnd = noon.Add(time.Hour), noon.Add(time.Hour)
	for _, r := range []store.Record{term, foreign} {
		must(t, "Append()", first.Append(t.Context(), r))
	}
	must(t, "Close()", first.Close(t.Context()))
	const set = 2 * time.Hour
	c.Mock.Add(set)
	o := Options{Path: path, Clock: c, BootID: "second"}
	wantDoubt(t, "below it", o, set, `"job" in record 1`)
	_, err := open(t, o).Reanchor(t.Context())
	documenttest.Says(t, "Reanchor()", err, ErrInUse, `"job" until `+store.Format(term.WindowEnd))
}

// The clock was ahead, so by the time that is right the term and its token are too far ahead.
func TestAnOverrideByTheRightTimeEndsATermByAWrongOne(t *testing.T) {
	const ahead = 2 * time.Hour
	path := filepath.Join(t.TempDir(), "ledger.db")
	c := bootedAt(noon.Add(ahead), 40*24*time.Hour, 0)
	first := open(t, Options{Path: path, Clock: c, BootID: "first"})
	now(t, first)
	term := granted(1, noon.Add(ahead), 6*time.Hour)
	term.Token = term.WindowStart.UnixMilli()
	must(t, "Append()", first.Append(t.Context(), term))
	must(t, "Close()", first.Close(t.Context()))
	c.Mock.Add(-ahead)
	o := Options{Path: path, Clock: c, BootID: "second"}
	wantDoubt(t, "before it", o, ahead)
	second := open(t, o)
	wantErr(t, "Reanchor()", documenttest.ErrorOf(second.Reanchor(t.Context())), ErrInUse)
	override := ended(term, store.KindOverride)
	override.ReadAt, override.WindowStart, override.WindowEnd, override.Token = noon, noon, noon, noon.UnixMilli()
	must(t, "Append()", second.Append(t.Context(), override))
	must(t, "Reanchor() after an override", documenttest.ErrorOf(second.Reanchor(t.Context())))
	wantLine(t, "after it", o, 0)
}

// A worker wins a slot before it begins.
func TestATermThatIsAboutToBeginCounts(t *testing.T) {
	at := storetest.Grant("job", 1).WindowStart.Add(time.Minute) // the first line's time in containers
	for ahead, soon := range map[time.Duration]bool{ledger.Ahead: true, ledger.Ahead + time.Millisecond: false} {
		next := granted(1, at.Add(ahead), time.Hour)
		_, second, c := containers(t, 5*time.Second, func(path string) {
			must(t, "Append()", open(t, Options{Path: path}).Append(t.Context(), next))
		})
		documenttest.Equal(t, "a term to come in "+ahead.String()+" counts", counts(t, second, c), soon)

		l, _ := wrong(t, at.Add(-2*time.Hour), 2*time.Hour)
		must(t, "Append()", l.Append(t.Context(), next))
		_, err := l.Reanchor(t.Context())
		if soon {
			documenttest.Says(t, "Reanchor()", err, ErrInUse, `"job" until `+store.Format(next.WindowEnd))
		} else {
			must(t, "Reanchor()", err)
		}
	}
}

// The clock was set once, weeks ago, by 12 h, and the worker starts again each day.
func TestDoubtIsOnlyAboutTermsFromBeforeTheClockWasSet(t *testing.T) {
	const day = 24 * time.Hour
	for _, set := range []time.Duration{12 * time.Hour, -12 * time.Hour} {
		for _, before := range []time.Duration{0, 8 * time.Hour} { // how long a term by the first line lasts
			path := filepath.Join(t.TempDir(), "ledger.db")
			midnight := noon.Truncate(day)
			c := bootedAt(midnight.Add(6*time.Hour).Add(-set), 40*day, 0)
			first := open(t, Options{Path: path, Clock: c, BootID: "first"})
			now(t, first)
			if before > 0 {
				r := granted(1, c.Mock.Now(), before)
				r.ReadAt = r.WindowStart
				must(t, "Append()", first.Append(t.Context(), r))
			}
			must(t, "Close()", first.Close(t.Context()))
			c.Mock.Add(set)
			until := c.Mock.Now().Add(before)
			for d := range int64(5) {
				for range 2 {
					l := open(t, Options{Path: path, Clock: c, BootID: "second"})
					what := fmt.Sprintf("a doubt on day %d, with a term of %v before the clock was set by %v", d, before, set)
					waits := documenttest.ErrorOf(l.Now(t.Context())) != nil
					documenttest.Equal(t, what, waits, c.Mock.Now().Before(until))
					r := granted(2+d, midnight.Add(time.Duration(d)*day), day)
					r.Claim, r.Token, r.ReadAt = fmt.Sprint("claim ", d), r.WindowStart.UnixMilli(), r.WindowStart
					if !waits && l.Append(t.Context(), r) != nil {
						must(t, "Get()", documenttest.ErrorOf(l.Get(t.Context(), "job", r.Seq)))
					}
					must(t, "Close()", l.Close(t.Context())) // It crashes, and starts again a minute later.
					pass(c, c.Mock.Now().Add(time.Minute))
				}
				pass(c, midnight.Add(time.Duration(d+1)*day+6*time.Hour))
			}
		}
	}
}

// The clock is right all the time. A worker starts 30 s into the first boot, and 20 s into the
// second. What was in force as long after the first is not taken for what is in force now.
func TestALineOfAnEarlierBootLeavesNoDoubt(t *testing.T) {
	for _, apart := range []time.Duration{3 * time.Hour, 72 * time.Hour} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		first := open(t, Options{Path: path, Clock: bootedAt(noon, 30*time.Second, 0), BootID: "one"})
		now(t, first)
		must(t, "Append()", first.Append(t.Context(), granted(1, noon, 18*time.Hour)))
		must(t, "Close()", first.Close(t.Context()))

		c := bootedAt(noon.Add(apart), 20*time.Second, 0)
		for range 3 {
			l := open(t, Options{Path: path, Clock: c, BootID: "two"})
			documenttest.Equal(t, fmt.Sprintf("skew %v into a boot %v later", c.since, apart), now(t, l).Skew, 0)
			must(t, "Close()", l.Close(t.Context()))
			pass(c, c.Mock.Now().Add(5*time.Minute))
		}
	}
}

// Each boot leaves a row, and each container that has a boot id.
func TestRowsOfBootsAreRemovedWhenTheyAreMany(t *testing.T) {
	for what, offset := range map[string]string{"one line": "wallOffset", "many boots": "wallOffset - i * 86400000000"} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		c := bootedAt(noon, time.Hour, 0)
		first := open(t, Options{Path: path, Clock: c, BootID: "first"})
		want := now(t, first)
		execute(t, raw(t, path), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
			INSERT INTO Boot (id, wallOffset, madeAt) SELECT 'id ' || i, `+offset+`, madeAt FROM n, Boot`)
		now(t, open(t, Options{Path: path, Clock: c, BootID: "second"}))
		if n := asked[int64](t, path, `SELECT count(*) FROM Boot`); n > 2 {
			t.Errorf("%s: %d rows are left, want those in use", what, n)
		}
		documenttest.Equal(t, what+": a stamp of the handle that was there", now(t, first), want)
		must(t, "Append()", first.Append(t.Context(), storetest.Grant("job", 1)))
	}
}

// Its processes will go by it again when they start.
func TestTheWrongTimeOfAContainerIsSeenAndMendedFromOutside(t *testing.T) {
	l, c := wrong(t, noon, 30*time.Second)
	want := now(t, l).Time
	must(t, "Close()", l.Close(t.Context()))
	reader := open(t, Options{Path: l.o.Path, Clock: c, BootID: "host", ReadOnly: true})
	now(t, reader)
	documenttest.Says(t, "Warning()", textError(reader.Warning()), nil, "is 30s behind store time", "leasectl reanchor")
	host := open(t, Options{Path: l.o.Path, Clock: c, BootID: "host"})
	for _, act := range []func() (Anchor, error){
		func() (Anchor, error) { return host.PlanReanchor(t.Context()) },
		func() (Anchor, error) { return host.Reanchor(t.Context()) },
	} {
		if a, err := act(); err != nil || !a.StoreTime.Equal(want) || a.Apart() != -30*time.Second {
			t.Errorf("re-anchored: %+v, %v, want store time to be %v, and 30s ahead", a, err, want)
		}
	}
	documenttest.Equal(t, "the container's time", now(t, open(t, Options{Path: l.o.Path, Clock: c, BootID: "b"})).Time, c.Mock.Now())
	now(t, reader)
	documenttest.Equal(t, "Warning() afterwards", reader.Warning(), "")
}
