package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// tails asks for tails, all while the handle's one connection is taken, so that all but the first wait for
// each other.
func tails(t *testing.T, l *Ledger, asked []question, of func(i int) context.Context, meanwhile func()) []answer {
	t.Helper()
	conn, err := l.file.db.Conn(t.Context())
	must(t, "Conn()", err)
	answers := make([]answer, len(asked))
	var all sync.WaitGroup
	for i, q := range asked {
		all.Go(func() {
			a := &answers[i]
			a.records, a.stamp, a.err = l.Tail(of(i), q.workerType, q.limit)
		})
	}
	suites.Eventually(t, fmt.Sprintf("%d tails wait", len(asked)-1), func() bool { return l.tails.Waiting() >= len(asked)-1 })
	meanwhile()
	must(t, "Close()", conn.Close())
	all.Wait()
	return answers
}

// mixed is a ledger with types that have no records, few, many, and some that can't be followed or read.
func mixed(t *testing.T) (l *Ledger, asked []question) {
	t.Helper()
	l, _ = inUse(t, Options{})
	db := raw(t, l.o.Path)
	for i := range 40 {
		name := fmt.Sprintf("job%d", i)
		for seq := range int64(i % 13) {
			must(t, "Append()", l.Append(t.Context(), storetest.Grant(name, seq+1)))
		}
		switch i % 5 {
		case 1:
			execute(t, db, fmt.Sprintf("INSERT INTO WorkerLeases (workerType, seq) VALUES ('%s', %d)", name, int64(store.MaxSeq)+1))
		case 2:
			execute(t, db, fmt.Sprintf("INSERT INTO WorkerLeases (workerType, seq) VALUES ('%s', -7)", name))
		case 3:
			execute(t, db, fmt.Sprintf("INSERT INTO WorkerLeases (workerType, seq, kind) VALUES ('%s', 100, 'nonsense')", name))
		}
		asked = append(asked, question{name, i % (gathered + 1), 0}, question{name, 1, 0})
	}
	return l, append(asked, question{"none", 3, 0}, question{"job7", gathered, 0})
}

// alike compares the tails that were read with others to what each is alone.
func alike(t *testing.T, l *Ledger, asked []question, got []answer) {
	t.Helper()
	for i, q := range asked {
		want, _, err := l.Tail(t.Context(), q.workerType, q.limit)
		must(t, "Tail()", err)
		must(t, "Tail() with others", got[i].err)
		documenttest.Equal(t, fmt.Sprintf("Tail(%q, %d) with others", q.workerType, q.limit), text(t, got[i].records), text(t, want))
	}
}

func TestTailsOfManyTypesAreWhatEachIsAlone(t *testing.T) {
	l, asked := mixed(t)
	got := tails(t, l, asked, always(t), func() {})
	alike(t, l, asked, got)
	stamps := map[store.Stamp]int{}
	for _, a := range got {
		stamps[a.stamp]++
	}
	documenttest.Equal(t, "stamps of one tail alone and one statement for the others", len(stamps), 2)
}

// Others may add tables, and columns that can be empty, of any name.
func TestTailsOfManyTypesWhereOthersHaveAdded(t *testing.T) {
	for _, added := range []string{
		"CREATE TABLE json_each (value)",
		"CREATE VIEW json_each AS SELECT 0 AS key, 'job7' AS value",
		"CREATE TABLE asked (value)",
		"ALTER TABLE WorkerLeases ADD COLUMN key TEXT",
		"ALTER TABLE WorkerLeases ADD COLUMN value TEXT",
		"ALTER TABLE WorkerLeases ADD COLUMN asked TEXT",
	} {
		t.Run(added, func(t *testing.T) {
			l, asked := mixed(t)
			execute(t, raw(t, l.o.Path), added)
			alike(t, l, asked, tails(t, l, asked, always(t), func() {}))
		})
	}
}

// Those who read go by a table that another program has rebuilt, whose keys may be no integers.
func TestTailsOfManyTypesOfATableThatIsNotStrict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := raw(t, path)
	for _, s := range creation {
		execute(t, db, strings.ReplaceAll(s, "STRICT, ", ""))
	}
	execute(t, db, "PRAGMA journal_mode = WAL", "INSERT INTO Boot VALUES ('boot', 1)", "INSERT INTO WorkerLeases (workerType, seq) VALUES (x'6a6f6230', 9), ('JOB0', 7)")
	var asked []question
	for i, seqs := range [][]string{{"1", "2.5", "3"}, {"'text'", "1", "2"}, {"1.5", "0", "2"}, {"x'00'", "1"}, {"-3.5", "1", "2"}, {"9e18", "1.5"}, {"0.5", "1.5", "2", "2.5", "3"}, {"1", "2"}} {
		name := fmt.Sprint("job", i)
		for _, seq := range seqs {
			execute(t, db, fmt.Sprintf("INSERT INTO WorkerLeases (workerType, seq) VALUES ('%s', %s)", name, seq))
		}
		for limit := range gathered + 1 {
			asked = append(asked, question{name, limit, 0})
		}
	}
	l := open(t, Options{Path: path, ReadOnly: true})
	must(t, "Now()", documenttest.ErrorOf(l.Now(t.Context())))
	alike(t, l, asked, tails(t, l, asked, always(t), func() {}))
}

// A damaged page has the records of a few types. The others are read still.
func TestTailsOfManyTypesOfWhichSomeAreDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	var asked []question
	for i := range 60 {
		r := storetest.Grant(fmt.Sprintf("job%02d", i), 1)
		r.Metadata = strings.Repeat("x", 1000)
		must(t, "Append()", l.Append(t.Context(), r))
		asked = append(asked, question{r.WorkerType, 1, 0})
	}
	now(t, l)
	must(t, "Close()", l.Close(t.Context()))
	b := contentOf(t, path)
	page := bytes.Index(b, []byte("job30")) &^ 4095
	copy(b[page:], bytes.Repeat([]byte{0xa5}, 100))
	content(b)(t, path)

	l = open(t, Options{Path: path})
	must(t, "Init()", l.Init(t.Context()))
	failed := 0
	for i, a := range tails(t, l, asked, always(t), func() {}) {
		_, _, err := l.Tail(t.Context(), asked[i].workerType, 1)
		if err == nil {
			must(t, "Tail() with others", a.err)
			continue
		}
		failed++
		documenttest.Says(t, "Tail() with others", a.err, store.ErrRefused, asked[i].workerType+":", "corrupt")
	}
	if failed == 0 || failed == len(asked) {
		t.Errorf("%d of %d tails fail, want some", failed, len(asked))
	}
}

func text(t *testing.T, records []store.Record) string {
	t.Helper()
	if len(records) == 0 {
		return "none"
	}
	b, err := json.MarshalIndent(records, "", " ")
	must(t, "Marshal()", err)
	return string(b)
}

func TestATailWhoseContextEndsDisturbsNoOther(t *testing.T) {
	l, asked := mixed(t)
	ended, end := context.WithCancel(t.Context())
	got := tails(t, l, asked, func(i int) context.Context {
		if i%2 == 0 {
			return ended
		}
		return t.Context()
	}, end)
	for i, a := range got {
		if i%2 == 0 {
			wantErr(t, "Tail() whose context has ended", a.err, context.Canceled)
		} else {
			must(t, "Tail()", a.err)
		}
	}
}

func TestTailsThatWaitWhenTheHandleIsClosed(t *testing.T) {
	l, asked := mixed(t)
	closed := make(chan error, 1)
	got := tails(t, l, asked, always(t), func() {
		go func() { closed <- l.Close(t.Context()) }()
		for l.begin() == nil {
			l.calls.Done()
		}
	})
	must(t, "Close()", <-closed)
	answered := 0
	for i, a := range got {
		if a.err == nil {
			answered++
		} else {
			documenttest.Says(t, "Tail() at Close", a.err, store.ErrClosed, asked[i].workerType+":")
		}
	}
	if answered > 1 {
		t.Errorf("%d tails were answered, want at most the one that was under way", answered)
	}
}

// Those that have waited for a tail that was locked out don't wait as long again.
func TestTailsThatAreLockedOutForTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	must(t, "Close()", l.Close(t.Context()))
	// In this mode, writers lock readers out.
	execute(t, raw(t, path), "PRAGMA journal_mode = DELETE")
	c := clock.NewMock()
	c.Set(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	l = open(t, Options{Path: path, ReadOnly: true, BusyTimeout: time.Second, Clock: c})
	asked := []question{{"job", 1, 0}, {"job", 1, 0}, {"other", 1, 0}, {"third", 1, 0}}
	must(t, "Now()", documenttest.ErrorOf(l.Now(t.Context())))
	var release func()
	got := tails(t, l, asked, always(t), func() {
		release = exclude(t, path)
		go func() {
			for t.Context().Err() == nil {
				c.Add(lastPause)
			}
		}()
	})
	for i, a := range got {
		documenttest.Says(t, "Tail()", a.err, nil, asked[i].workerType+": busy: locked by another process for 1s")
	}
	if waited := time.Duration(l.tailWaits.Load()); waited < time.Second || waited > time.Second+lastPause {
		t.Errorf("tails that were asked for at once waited for locks for %v, want 1s", waited)
	}
	release()
	must(t, "Tail() when the lock is free", l.ask(t.Context(), asked[0]).err)
}

// exclude locks readers out of a file without a log.
func exclude(t *testing.T, path string) (release func()) {
	t.Helper()
	conn, err := raw(t, path).Conn(t.Context())
	must(t, "Conn()", err)
	must(t, "BEGIN EXCLUSIVE", documenttest.ErrorOf(conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE")))
	return func() {
		must(t, "ROLLBACK", documenttest.ErrorOf(conn.ExecContext(t.Context(), "ROLLBACK")))
		must(t, "Close()", conn.Close())
	}
}

func TestATailOfAClosedHandleFailsWhileAnotherHangs(t *testing.T) {
	l, asked := mixed(t)
	tails(t, l, asked[:2], always(t), func() {
		ended, end := context.WithCancel(t.Context())
		end()
		wantErr(t, "Close()", l.Close(ended), context.Canceled)
		wantErr(t, "Tail()", in(t, "Tail()", func() error {
			_, _, err := l.Tail(t.Context(), "job2", 1)
			return err
		}), store.ErrClosed)
	})
}

// Tables that another program has rebuilt are refused by each.
func TestTailsOfManyTypesOfATableThatWasDropped(t *testing.T) {
	l, asked := mixed(t)
	for i, a := range tails(t, l, asked, always(t), func() { execute(t, raw(t, l.o.Path), "DROP TABLE WorkerLeases") }) {
		documenttest.Says(t, "Tail()", a.err, store.ErrRefused, asked[i].workerType+":")
	}
}

// BenchmarkTails is one statement for the tails of 500 types, and as many single ones.
func BenchmarkTails(b *testing.B) {
	l := open(b, Options{Path: filepath.Join(b.TempDir(), "ledger.db")})
	asked := make([]question, maxTails)
	for i := range asked {
		asked[i] = question{fmt.Sprint("job", i), 1, 0}
		for seq := int64(1); seq <= 3; seq++ {
			if err := l.Append(b.Context(), storetest.Grant(asked[i].workerType, seq)); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, n := range []int{1, maxTails} {
		b.Run(fmt.Sprintf("%d at once", n), func(b *testing.B) {
			for b.Loop() {
				for i := 0; i < maxTails; i += n {
					for _, a := range l.readTails(b.Context(), asked[i:i+n]) {
						if a.err != nil || a.records[0].Seq != 3 {
							b.Fatal(a)
						}
					}
				}
			}
		})
	}
}
