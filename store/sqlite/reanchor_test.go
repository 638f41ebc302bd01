package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// wrong is a ledger on a machine whose wall clock was wrong by some time at the first use.
func wrong(t *testing.T, at time.Time, by time.Duration) (*Ledger, *booted) {
	t.Helper()
	c := bootedAt(at.Add(by).Truncate(time.Microsecond), time.Minute, 0)
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "ledger.db"), Clock: c, BootID: "b"})
	documenttest.Equal(t, "Warning() before the first use", l.Warning(), "")
	now(t, l)
	documenttest.Equal(t, "Warning()", l.Warning(), "")
	c.Mock.Add(-by)
	return l, c
}

func TestAWallClockThatIsNotStoreTimeIsWarnedOf(t *testing.T) {
	for by, want := range map[time.Duration]string{
		-3 * time.Hour: "is 3h0m0s ahead of store time", 90 * time.Second: "is 1m30s behind store time",
		time.Second: "", -time.Second: "",
	} {
		l, _ := wrong(t, noon, by)
		now(t, l)
		if want == "" {
			documenttest.Equal(t, "Warning()", l.Warning(), "")
		} else {
			documenttest.Says(t, "Warning()", textError(l.Warning()), nil, want, "leasectl reanchor")
		}
	}
}

type textError string

func (e textError) Error() string { return string(e) }

func TestAnIdleLedgerIsAnchoredToTheWallClockAnew(t *testing.T) {
	for _, by := range []time.Duration{-50 * 365 * 24 * time.Hour, -time.Hour, time.Hour} {
		l, c := wrong(t, noon, by)
		must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1))) // long ago by both
		for what, act := range map[string]func() (Anchor, error){
			"PlanReanchor()": func() (Anchor, error) { return l.PlanReanchor(t.Context()) },
			"Reanchor()":     func() (Anchor, error) { return l.Reanchor(t.Context()) },
		} {
			if what == "Reanchor()" {
				documenttest.Equal(t, "store time before", now(t, l).Time, c.Mock.Now().Add(by))
			}
			got, err := act()
			if err != nil {
				t.Fatalf("%s = %v", what, err)
			}
			if what == "PlanReanchor()" && got.Apart() == 0 {
				continue // It came second.
			}
			if !got.StoreTime.Equal(c.Mock.Now().Add(by)) || !got.WallTime.Equal(c.Mock.Now()) || len(got.Ahead) != 0 {
				t.Errorf("%s = %+v, want from %v to %v, and nothing ahead", what, got, c.Mock.Now().Add(by), c.Mock.Now())
			}
			if what == "Reanchor()" {
				break
			}
		}
		documenttest.Equal(t, "store time", now(t, l).Time, c.Mock.Now())
		documenttest.Equal(t, "Warning()", l.Warning(), "")
		must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 2)))
	}
}

func TestALedgerIsNotReanchoredWhileATermMayBeInForceByEitherClock(t *testing.T) {
	r := storetest.Grant("job", 1)
	during, before, after := r.WindowStart.Add(time.Minute), r.WindowStart.Add(-time.Hour), r.WindowEnd.Add(time.Hour)
	release, override := ended(r, store.KindRelease), ended(r, store.KindOverride)
	other := release
	other.Claim = "another"
	for _, c := range []struct {
		what        string
		store, wall time.Time
		then        []store.Record
		free        bool
	}{
		{"by store time", during, after, nil, false},
		{"by the wall clock", after, during, nil, false},
		{"by store time, and later by the wall clock", during, before, nil, false},
		{"to come by store time", before, after, nil, true},
		{"over by store time, and to come by the wall clock", after, before, nil, true},
		{"over by both", after, after.Add(time.Hour), nil, true},
		{"released", during, after, []store.Record{release}, true},
		{"below the release of another", during, after, []store.Record{other}, false},
		{"overridden", during, after, []store.Record{override}, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			l, clock := wrong(t, c.wall, c.store.Sub(c.wall))
			must(t, "Append()", l.Append(t.Context(), r))
			for _, r := range c.then {
				must(t, "Append()", l.Append(t.Context(), r))
			}
			a, err := l.Reanchor(t.Context())
			if !c.free {
				documenttest.Says(t, "Reanchor()", err, ErrInUse, `"job" until `+store.Format(r.WindowEnd), "record 1")
				documenttest.Equal(t, "store time", now(t, l).Time, clock.Mock.Now().Add(c.store.Sub(c.wall)))
				return
			}
			must(t, "Reanchor()", err)
			documenttest.Equal(t, "store time", now(t, l).Time, clock.Mock.Now())
			if ahead := c.wall.Equal(before); ahead != (len(a.Implausible) == 1) || len(a.Ahead) != 0 {
				t.Errorf("Reanchor() = %+v, want the record to be implausible: %v", a, ahead)
			}
		})
	}
}

func TestWhatIsAheadOfTheNewTimeIsShownByWhatWorkersDoAboutIt(t *testing.T) {
	for _, c := range []struct {
		what               string
		starts             time.Duration // after the new time
		token              time.Duration
		ahead, implausible int
	}{
		{"soon", 10 * time.Minute, 0, 1, 0},
		{"later", 10*time.Minute + time.Millisecond, 0, 0, 1},
		{"soon, with a token that is later", time.Minute, 10*time.Minute + time.Millisecond, 0, 1},
		{"over", -time.Hour, 0, 0, 0},
	} {
		at := noon.Truncate(time.Millisecond)
		l, _ := wrong(t, at, time.Hour)
		r := granted(1, at.Add(c.starts), 5*time.Minute)
		r.Token = at.Add(c.token).UnixMilli()
		must(t, "Append()", l.Append(t.Context(), r))
		a, err := l.PlanReanchor(t.Context())
		if err != nil || len(a.Ahead) != c.ahead || len(a.Implausible) != c.implausible {
			t.Errorf("%s: PlanReanchor() = %+v, %v, want %d ahead and %d implausible", c.what, a, err, c.ahead, c.implausible)
		}
	}
}

func TestALedgerIsNotReanchoredBelowARecordThatCantBeRead(t *testing.T) {
	l, _ := wrong(t, noon, time.Hour)
	plant(t, l.o.Path, "job", 1, map[string]any{"kind": "grant"})
	_, err := l.Reanchor(t.Context())
	documenttest.Says(t, "Reanchor()", err, ErrInUse, `"job" by record 1, which can't be read`)
	reset := storetest.Grant("job", 2)
	reset.Kind = store.KindReset
	must(t, "Append()", l.Append(t.Context(), reset))
	must(t, "Reanchor() after a reset", documenttest.ErrorOf(l.Reanchor(t.Context())))
}
