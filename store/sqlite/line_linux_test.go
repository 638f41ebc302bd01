package sqlite

import (
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/clocks"
)

// wantBetween demands that a clerk's time is exact, and between two readings by a handle.
func wantBetween(t *testing.T, l *Ledger, c *clerk) {
	t.Helper()
	before := now(t, l)
	at, skew := c.now(t)
	if after := now(t, l); at.Before(before.Time) || at.After(after.Time) || skew != 0 || before.Skew != 0 {
		t.Errorf("times = %v, %v ± %v, %v, want them in order, and exact", before.Time, at, skew, after.Time)
	}
}

// The wall clock of the first process is 5 s from that of the others.
func TestWhileALedgerIsInUseAllProcessesOfTheMachineUseOneLine(t *testing.T) {
	for _, by := range []time.Duration{-5 * time.Second, 5 * time.Second, -50 * 365 * 24 * time.Hour} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		l := open(t, Options{Path: path, Clock: clocks.Skewed(clock.New(), by)})
		now(t, l)
		t.Setenv(bootVar, "private")
		one := hire(t, path)
		wantBetween(t, l, one)
		t.Setenv(bootVar, "another")
		wantBetween(t, l, hire(t, path))

		// Its own row from before the others are gone isn't used while another is.
		must(t, "Close()", l.Close(t.Context()))
		execute(t, raw(t, path), `UPDATE Boot SET wallOffset = wallOffset + 9000000 WHERE id NOT IN ('private', 'another')`)
		wantBetween(t, open(t, Options{Path: path}), one)
		one.end()
	}
}

func TestOfProcessesThatBeginAtOnceWithLinesOfTheirOwnAllUseOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Init()", l.Init(t.Context()))
	const n = 5
	clerks := make([]*clerk, n)
	db := raw(t, path)
	for i := range clerks {
		id := string(rune('a' + i))
		t.Setenv(bootVar, id)
		clerks[i] = hire(t, path)
		execute(t, db, `INSERT INTO Boot (id, wallOffset) VALUES ('`+id+`', `+string(rune('1'+i))+`000000000)`)
	}
	var wg sync.WaitGroup
	for _, c := range clerks {
		wg.Go(func() { c.now(t) })
	}
	wg.Wait()
	for _, c := range clerks {
		wantBetween(t, l, c)
	}
}

func TestALedgerIsNotReanchoredWhileAnotherProcessGoesByItsTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	t.Setenv(bootVar, "private")
	other := hire(t, path)
	at, _ := other.now(t)
	l := open(t, Options{Path: path, Clock: clocks.Skewed(clock.New(), time.Hour)})
	_, err := l.Reanchor(t.Context())
	documenttest.Says(t, "Reanchor()", err, ErrInUse, "stop all workers first")
	wantBetween(t, l, other)
	second := open(t, Options{Path: path})
	must(t, "Init()", second.Init(t.Context()))
	other.end()
	_, err = l.Reanchor(t.Context())
	documenttest.Says(t, "Reanchor() beside another handle", err, ErrInUse, "another handle of this process")
	must(t, "Close()", second.Close(t.Context()))
	must(t, "Reanchor()", documenttest.ErrorOf(l.Reanchor(t.Context())))
	if got := now(t, l).Time; got.Before(at.Add(time.Hour)) {
		t.Errorf("Now() = %v, want an hour after %v", got, at)
	}
	wantBetween(t, l, hire(t, path))
}

// While it is being re-anchored, a worker that starts waits, and then goes by the new time.
func TestAWorkerThatStartsWhileALedgerIsReanchoredWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path, Clock: clocks.Skewed(clock.New(), time.Hour)})
	must(t, "Init()", l.Init(t.Context()))
	release, err := claimLines(l.file.files, false)
	must(t, "claimLines()", err)
	t.Setenv(bootVar, "private")
	other := hire(t, path)
	answered := make(chan time.Time, 1)
	go func() {
		at, _ := other.now(t)
		answered <- at
	}()
	select {
	case at := <-answered:
		t.Errorf("a worker read %v, want it to wait", at)
	case <-time.After(100 * time.Millisecond):
	}
	release()
	must(t, "Reanchor()", func() error {
		select {
		case <-answered:
		case <-suites.Deadline(t).Done():
			return errOtherLine
		}
		return nil
	}())
}

// The clock of the first process is wrong, so that another line would show.
func TestAHandleHoldsItsTimeLineUntilCloseThoughItsConnectionIsInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path, Clock: clocks.Skewed(clock.New(), -50*365*24*time.Hour)}) // realtime: processes compare it
	s := now(t, l)
	next := granted(1, s.Time.Add(time.Minute).Truncate(time.Millisecond), time.Hour)
	must(t, "Append()", l.Append(t.Context(), next))
	for i, again := range []func(){
		func() {}, // there is no connection
		func() { must(t, "Get()", documenttest.ErrorOf(l.Get(t.Context(), "job", 1))) },
		func() { must(t, "Append()", l.Append(t.Context(), granted(2, next.WindowEnd, time.Hour))) },
	} {
		interrupt(t, l)
		again()
		t.Setenv(bootVar, "private "+strconv.Itoa(i))
		other := hire(t, path)
		at, skew := other.now(t) // before this handle reads the time again
		if got := now(t, l); got.Time.Before(at) || got.Time.Sub(at) > time.Minute || skew != 0 {
			t.Errorf("times = %v ± %v, then %v, want them in order, and exact", at, skew, got.Time)
		}
		other.end()
	}
	interrupt(t, l)
	must(t, "Get()", documenttest.ErrorOf(l.Get(t.Context(), "job", 1)))
	operator := open(t, Options{Path: path})
	must(t, "Init()", operator.Init(t.Context()))
	_, err := operator.Reanchor(t.Context())
	documenttest.Says(t, "Reanchor() beside it", err, ErrInUse, "another handle of this process")
	must(t, "Close()", l.Close(t.Context()))
	held, err := usedLines(operator.file.files, map[string]line{"b": *l.line.Load()})
	if err != nil || len(held) != 0 {
		t.Errorf("after Close, lines are held: %v, %v", held, err)
	}
}

// A term by the line of a process that joins another one may still be in force.
func TestALineStaysKnownWhenItsProcessesJoinAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	open := func(id string, ahead time.Duration) *Ledger {
		t.Helper()
		l := open(t, Options{Path: path, Clock: clocks.Skewed(clock.New(), ahead)})
		l.boot.id = id
		return l
	}
	first := open("first", time.Hour)
	term := granted(1, now(t, first).Time.Add(-time.Minute).Truncate(time.Millisecond), 30*time.Minute)
	must(t, "Append()", first.Append(t.Context(), term))
	must(t, "Close()", first.Close(t.Context())) // as if killed

	waits := func(l *Ledger) {
		t.Helper()
		documenttest.Says(t, "Now()", documenttest.ErrorOf(l.Now(t.Context())), nil, "store time is in doubt for ", `the lease of "job" in record 1`)
	}
	second := open("second", 0)
	waits(second)
	again := open("first", 0)
	own, joined := now(t, again).Time, now(t, second).Time
	if own.Before(term.WindowStart) || joined.Before(own) || joined.Sub(own) > time.Minute {
		t.Errorf("times = %v, then %v, want those of the first line: it is in use again", own, joined)
	}
	must(t, "Close()", again.Close(t.Context()))
	must(t, "Close()", second.Close(t.Context()))

	third := open("third", 0)
	waits(third)
	_, err := third.Reanchor(t.Context())
	documenttest.Says(t, "Reanchor()", err, ErrInUse, `"job" until `)
	must(t, "Append()", third.Append(t.Context(), ended(term, store.KindRelease)))
	must(t, "Reanchor() after the release", documenttest.ErrorOf(third.Reanchor(t.Context())))
	if s := now(t, third); s.Time.After(time.Now()) {
		t.Errorf("stamp of a line that was anchored anew = %+v, want the wall clock's", s)
	}
}

// Nobody holds a line before it is certain: another process would take that for use.
func TestALineIsHeldOnlyInTheTransactionThatTakesIt(t *testing.T) {
	suites.RealTime(t)
	path := filepath.Join(t.TempDir(), "ledger.db")
	t.Setenv(bootVar, "one")
	c := hire(t, path)
	c.now(t)
	c.end()
	l := open(t, Options{Path: path, Clock: clocks.Skewed(clock.New(), 5*time.Second)})
	l.boot.id = "two"
	s := now(t, l)
	must(t, "Append()", l.Append(t.Context(), granted(1, s.Time.Add(-time.Minute).Truncate(time.Millisecond), time.Hour)))
	must(t, "Close()", l.Close(t.Context())) // as if killed: its term lasts

	writing, err := raw(t, path).BeginTx(t.Context(), nil)
	must(t, "BeginTx()", err)
	_, err = writing.ExecContext(t.Context(), lockBoot)
	must(t, "lockBoot", err)
	ahead := make(chan time.Duration, 2)
	for range 2 {
		one := hire(t, path)
		go func() {
			at, _ := one.now(t)
			ahead <- time.Until(at)
		}()
	}
	f, err := filesAt(path, true)
	must(t, "filesAt()", err)
	for begun := time.Now(); time.Since(begun) < 200*time.Millisecond; {
		if _, err := usedLines(f, nil); err != nil {
			t.Fatalf("a line is held while another process writes: %v", err)
		}
	}
	must(t, "Rollback()", writing.Rollback())
	for range 2 {
		if by := <-ahead; (by - 5*time.Second).Abs() > 2*time.Second {
			t.Errorf("the time of a worker that starts with another is %v ahead, want about 5s: a term is in force by that line", by)
		}
	}
}

func TestALineThatTwoHandlesHoldIsHeldUntilBothHaveLetGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	n := line{offset: time.Hour}
	var undo []func()
	var f files
	for range 2 {
		l := open(t, Options{Path: path})
		must(t, "Init()", l.Init(t.Context()))
		f = l.file.files
		let, err := holdLine(f, n)
		must(t, "holdLine()", err)
		undo = append(undo, let)
	}
	for left := 2; ; left-- {
		used, err := usedLines(f, map[string]line{"b": n})
		must(t, "usedLines()", err)
		documenttest.Equal(t, "a line is held", len(used) == 1, left > 0)
		if left == 0 {
			break
		}
		undo[2-left]()
	}
}

// The same with processes, of which each holds its line while it lives.
func TestProcessesThatReturnTakeTheLineThatWasInUseSince(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	t.Setenv(bootVar, "private")
	one := hire(t, path)
	one.now(t)
	one.end()
	l := open(t, Options{Path: path, Clock: clocks.Skewed(clock.New(), 5*time.Second)})
	before := now(t, l).Time
	must(t, "Append()", l.Append(t.Context(), granted(1, before.Add(-time.Minute).Truncate(time.Millisecond), time.Hour)))
	must(t, "Close()", l.Close(t.Context()))
	for _, id := range []string{"private", "another"} {
		t.Setenv(bootVar, id)
		at, _ := hire(t, path).now(t)
		if at.Before(before) {
			t.Errorf("time of %s = %v, want it after %v", id, at, before)
		}
		before = at
	}
}
