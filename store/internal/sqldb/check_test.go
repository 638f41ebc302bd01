package sqldb

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
)

func TestOneTableOfChecksSaysWhatIsRefusedWarnedOfAndFound(t *testing.T) {
	t.Parallel()
	ledger := func(change func(r *Relation)) func(f *facts) { return func(f *facts) { change(f.Ledger) } }
	for what, c := range map[string]struct {
		change  func(f *facts)
		check   string // empty if nothing is wrong
		says    string
		refuses bool
	}{
		"nothing":              {change: func(*facts) {}},
		"a column of others":   {change: ledger(func(r *Relation) { r.Columns = append(r.Columns, Column{Name: "made"}) })},
		"a broken server":      {func(f *facts) { f.broken = true }, CheckServer, "the server is broken", true},
		"a doubtful one":       {func(f *facts) { f.doubtful = true }, "durability", "nothing is synced", false},
		"two servers":          {func(f *facts) { f.broken = true }, CheckServer, "the server is broken", true},
		"a view":               {ledger(func(r *Relation) { r.Kind = "view" }), CheckTable, "table own.worker_leases is a view", true},
		"triggers":             {ledger(func(r *Relation) { r.Triggers = []string{"a", "b"} }), store.CheckConstraints, "has triggers, which can change records or drop them: a, b", true},
		"constraints":          {ledger(func(r *Relation) { r.Constraints = []string{"few"} }), store.CheckConstraints, "which can keep records out: few", true},
		"another type":         {ledger(func(r *Relation) { r.Columns[0].Type = "text" }), CheckTable, "has the column worker_type of the type text, must be bytes: others may take two names for one", true},
		"an odd column":        {ledger(func(r *Relation) { r.Columns[2].Odd = "masked" }), CheckTable, "has the column document, which is masked", true},
		"a computed column":    {ledger(func(r *Relation) { r.Columns = append(r.Columns, Column{Name: "x", Odd: "computed"}) }), store.CheckConstraints, `that is computed, and whose failure keeps records out: "x"`, true},
		"a required column":    {ledger(func(r *Relation) { r.Columns = append(r.Columns, Column{Name: "x", Required: true}) }), store.CheckConstraints, `that must not be null: "x"`, true},
		"a column less":        {ledger(func(r *Relation) { r.Columns = r.Columns[:2] }), CheckTable, "has no column document", true},
		"no key":               {ledger(func(r *Relation) { r.Indexes = nil }), CheckTable, "has no primary key", true},
		"another unique index": {ledger(func(r *Relation) { r.Indexes = append(r.Indexes, Index{Name: "more"}) }), store.CheckConstraints, "besides its key, which keeps records out: more", true},
	} {
		f := soundFacts()
		c.change(f)
		l, core := opened(t, &server{facts: f}, Address{})
		err := core.check(within(t))
		if refused := errors.Is(err, store.ErrRefused); refused != c.refuses || refused && !strings.Contains(err.Error(), c.says) || !refused && err != nil {
			t.Errorf("check() with %s = %v, want refused: %v, and %q", what, err, c.refuses, c.says)
		}
		if flaw, ok := errors.AsType[storekit.Flaw](err); c.refuses && (!ok || flaw.Remedy == "" || flaw.Check != c.check) {
			t.Errorf("check() with %s = %+v, want a remedy, and the check %s", what, flaw, c.check)
		}
		if (core.Known() == nil) != c.refuses {
			t.Errorf("a server with %s counts as known: %v, want %v", what, core.Known() != nil, !c.refuses)
		}
		warned := c.check != "" && !c.refuses
		if w := l.Warning(); (w != "") != warned || warned && !strings.Contains(w, c.says) || strings.Contains(w, "ever was") {
			t.Errorf("Warning() with %s = %q, want a warning: %v", what, w, warned)
		}
		if d := l.Durability(); strings.HasPrefix(d.Power, "Not known") != c.refuses || !strings.HasSuffix(d.Power, " (Untested.)") {
			t.Errorf("Durability() with %s = %+v", what, d)
		}
		found, err := l.Examine(within(t))
		must(t, "Examine()", err)
		if c.check != "" {
			level := map[bool]store.Level{true: store.LevelFail, false: store.LevelWarn}[c.refuses]
			documenttest.Finds(t, found, c.check, level, c.says)
		}
		bad := slices.DeleteFunc(found, func(f store.Finding) bool { return f.Level == store.LevelOK || f.Check == store.CheckTLS })
		for _, f := range bad {
			if f.Check != c.check || f.Remedy == "" {
				t.Errorf("Examine() with %s found %+v, too", what, f)
			}
		}
	}
}

func TestWhatCanNotBeAskedIsSkippedWithTheReason(t *testing.T) {
	t.Parallel()
	skipped := []string{"durability", store.CheckServerClocks, store.CheckLedger, CheckTable, store.CheckExpiry, store.CheckConstraints, store.CheckAppend, store.CheckRead, store.CheckTrim, store.CheckRoster}
	s := &server{facts: soundFacts(), err: errDown}
	l, core := opened(t, s, Address{})
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckConnection, store.LevelFail, "nobody is there")
	for _, check := range append(skipped, CheckServer) {
		documenttest.Finds(t, found, check, store.LevelSkip, "no connection")
	}
	// It answers, and no operation can use it: somebody has named the wrong one, or later it is a failover.
	s.err = errOdd
	found, err = l.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckConnection, store.LevelOK, "answered in")
	documenttest.Finds(t, found, CheckServer, store.LevelFail, "it is a standby → name the primary")
	for _, check := range skipped {
		documenttest.Finds(t, found, check, store.LevelSkip, "no connection that can be used")
	}
	documenttest.Says(t, "check()", core.check(within(t)), store.ErrRefused, "it is a standby: name the primary")
	if m := core.Unfit(storekit.Unfit{Why: "standby"}); !errors.Is(m.Is, store.ErrRefused) || !m.NotStored {
		t.Errorf("Unfit() of the first server = %+v, want a refusal", m)
	}
	core.Learn(soundFacts())
	if err := core.check(within(t)); !errors.Is(err, errOdd) || errors.Is(err, store.ErrRefused) {
		t.Errorf("check() in a failover = %v, want %v alone", err, errOdd)
	}
	if m := core.Unfit(storekit.Unfit{Why: "standby"}); m.Is != nil || !m.NotStored {
		t.Errorf("Unfit() in a failover = %+v, want no more than that nothing was stored", m)
	}
	must(t, "Close()", l.Close(within(t)))
	_, err = l.Examine(within(t))
	documenttest.Is(t, "Examine() after Close()", err, store.ErrClosed)
}

func TestRightsAndTablesThatAreMissingAreFound(t *testing.T) {
	t.Parallel()
	for right, checks := range map[string]map[string]store.Level{
		"SELECT": {store.CheckAppend: store.LevelFail, store.CheckRead: store.LevelFail, store.CheckTrim: store.LevelWarn, store.CheckRoster: store.LevelWarn},
		"INSERT": {store.CheckAppend: store.LevelFail, store.CheckRoster: store.LevelWarn},
		"DELETE": {store.CheckTrim: store.LevelWarn, store.CheckRoster: store.LevelWarn},
		"UPDATE": {store.CheckRoster: store.LevelWarn},
	} {
		l, _ := opened(t, &server{facts: soundFacts(), lacks: right}, Address{})
		found, err := l.Examine(within(t))
		must(t, "Examine()", err)
		for _, check := range []string{store.CheckAppend, store.CheckRead, store.CheckTrim, store.CheckRoster} {
			if level, lacks := checks[check]; lacks {
				documenttest.Finds(t, found, check, level, "the user worker lacks "+right+" ON it → GRANT "+right+" ON it TO worker")
			} else {
				documenttest.Finds(t, found, check, store.LevelOK, "granted to worker")
			}
		}
		denied := right == "SELECT" || right == "INSERT"
		if err := l.CheckRights(within(t)); errors.Is(err, store.ErrDenied) != denied || !denied && err != nil {
			t.Errorf("CheckRights() without %s = %v, want denied: %v", right, err, denied)
		}
	}
	for lacks, want := range map[string]string{"": store.CheckLedger, "SELECT": store.CheckRead} {
		f := soundFacts()
		f.Ledger, f.Roster = nil, nil
		l, core := opened(t, &server{facts: f, lacks: lacks}, Address{})
		found, err := l.Examine(within(t))
		must(t, "Examine()", err)
		documenttest.Finds(t, found, want, store.LevelFail, "")
		documenttest.Finds(t, found, store.CheckRoster, store.LevelWarn, "there is no table own.worker_leases_roster → leasectl init")
		documenttest.Finds(t, found, CheckTable, store.LevelSkip, "")
		if err := core.check(within(t)); err == nil || core.Known() != nil {
			t.Errorf("check() without a table = %v, want an error", err)
		}
	}
}

func TestTwoServersThatTakeWritesAreRefused(t *testing.T) {
	t.Parallel()
	both := []storekit.Host{{Name: "a:1", Process: "db1 since 2026", Writes: true}, {Name: "b:1", Process: "db2", Writes: true, Ahead: time.Second}}
	two := Address{DatabaseURI: storekit.DatabaseURI{Hosts: []string{"a", "b"}, Ports: []string{"1", "1"}}}
	s := &server{facts: soundFacts(), hosts: both}
	l, core := opened(t, s, two)
	documenttest.Says(t, "check()", core.check(within(t)), store.ErrRefused, "two servers take writes, a:1 and b:1")
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, CheckServer, store.LevelFail, "two servers take writes")
	if _, err := core.Moved(within(t), "db1"); err != nil {
		t.Errorf("Moved() by the first connection = %v, want nil", err)
	}
	if _, err := core.Moved(within(t), "db2"); !errors.Is(err, store.ErrRefused) {
		t.Errorf("Moved() while both take writes = %v, want %v", err, store.ErrRefused)
	}
	// One is a replica, whose clock is off.
	both[1].Writes = false
	if moved, err := core.Moved(within(t), "db2"); !moved || err != nil {
		t.Errorf("Moved() = %v, %v, want true", moved, err)
	}
	must(t, "check()", core.check(within(t)))
	if got := core.Skew(); got != time.Second {
		t.Errorf("Skew() = %v, want what was measured", got)
	}
	if w := l.Warning(); !strings.Contains(w, "the clock of b:1 is 1s ahead") {
		t.Errorf("Warning() = %q, want the clock", w)
	}
	// Its clock is remembered when it is silent.
	both[1] = storekit.Host{Name: "b:1", Err: errDown}
	must(t, "check()", core.check(within(t)))
	if got := core.Skew(); got != time.Second {
		t.Errorf("Skew() while a host is silent = %v, want what was measured", got)
	}
	fresh, _ := opened(t, s, two)
	found, err = fresh.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckServerClocks, store.LevelSkip, "b:1 didn't answer")
}

func TestSkewIsAssumedOnceThereAreOtherServers(t *testing.T) {
	t.Parallel()
	s := &server{facts: soundFacts()}
	_, core := opened(t, s, Address{})
	must(t, "check()", core.check(within(t)))
	stamp := core.Stamped(store.Stamp{Time: time.Unix(1, 0), Server: "db1 since 2026"})
	if stamp.Skew != 0 || stamp.Clock != stamp.Server {
		t.Errorf("a stamp of one server = %+v, want no skew, and its clock's name", stamp)
	}
	if s := core.Stamped(store.Stamp{Time: time.Unix(1, 0), Server: "db1"}); s.Clock != "" {
		t.Errorf("a stamp of a server whose process isn't known = %+v, want no name of a clock", s)
	}
	s.facts.others = true
	must(t, "check()", core.check(within(t)))
	s.facts.others = false
	must(t, "check()", core.check(within(t)))
	if got := core.Skew(); got != DefaultSkew {
		t.Errorf("Skew() after another server was seen = %v, want %v", got, DefaultSkew)
	}
}
