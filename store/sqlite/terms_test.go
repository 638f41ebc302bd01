package sqlite

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// granted is a grant of the worker type "job" with a window.
func granted(seq int64, start time.Time, length time.Duration) store.Record {
	r := storetest.Grant("job", seq)
	r.WindowStart, r.WindowEnd = start, start.Add(length)
	return r
}

// ended is a record that ends the term of another.
func ended(r store.Record, kind store.Kind) store.Record {
	end := r
	end.Seq, end.Kind = r.Seq+1, kind
	if free := store.FromMillis(r.Token + 1); end.WindowStart.Before(free) {
		end.WindowStart = free // No worker releases a term before its token.
	}
	end.WindowEnd = end.WindowStart
	if kind == store.KindOverride {
		end.Claim, end.Token = "another", r.Token+1
	}
	return end
}

// fields are a row as a foreign program writes it.
func fields(r store.Record, change map[string]any) map[string]any {
	values, err := encode(r)
	if err != nil {
		panic(err)
	}
	row := map[string]any{}
	for i, c := range columns[2:] {
		row[c.name] = values[i+2]
	}
	for name, v := range change {
		row[name] = v
	}
	return row
}

// harmless are ledgers in which no term is in force at a time, though a window is.
func harmless(at time.Time) map[string]func(t *testing.T, l *Ledger) {
	start := at.Add(-time.Minute).Truncate(time.Millisecond)
	term := granted(1, start, 24*time.Hour)
	add := func(all ...store.Record) func(t *testing.T, l *Ledger) {
		return func(t *testing.T, l *Ledger) {
			for _, r := range all {
				must(t, "Append()", l.Append(t.Context(), r))
			}
		}
	}
	put := func(workerType string, seq int64, row map[string]any) func(t *testing.T, l *Ledger) {
		return func(t *testing.T, l *Ledger) { plant(t, l.o.Path, workerType, seq, row) }
	}
	far := map[string]any{"windowEnd": time.Date(8998, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()}
	long := granted(1, start, 366*24*time.Hour+time.Millisecond)
	above := granted(9, start, 24*time.Hour)
	return map[string]func(t *testing.T, l *Ledger){
		"released":                            add(term, ended(term, store.KindRelease)),
		"overridden":                          add(term, ended(term, store.KindOverride)),
		"a window of more than 366 days":      add(long),
		"a window up to the year 8998":        put("job", 1, fields(term, far)),
		"a name that no worker can have":      put("no such name", 1, fields(term, nil)),
		"an empty name":                       put("", 1, fields(term, nil)),
		"a name with NUL":                     put("job\x00", 1, fields(term, nil)),
		"what can't be read, under such name": put("-job", 1, map[string]any{"kind": "grant"}),
		"sightings":                           put(store.Sightings, 1, fields(term, nil)),
		"farther than workers ever come":      add(granted(1<<41, start, 24*time.Hour)),
		"above a free key":                    add(granted(1, start.Add(-time.Hour), time.Minute), above),
		"above a free key, unreadable": func(t *testing.T, l *Ledger) {
			add(granted(1, start.Add(-time.Hour), time.Minute))(t, l)
			put("job", 9, map[string]any{"kind": "grant"})(t, l)
		},
		"alone above free keys, unreadable": put("job", 9, map[string]any{"kind": "grant"}),
		"unreadable, below a grant that is over": func(t *testing.T, l *Ledger) {
			put("job", 1, map[string]any{"kind": "grant"})(t, l)
			add(granted(2, start.Add(-time.Hour), time.Minute))(t, l)
		},
		"an override with a window": put("job", 1, fields(term, map[string]any{"kind": "override"})),
		"without a claim":           put("job", 1, fields(term, map[string]any{"claim": ""})),
	}
}

func TestWhatIsNotInForceLeavesNoDoubt(t *testing.T) {
	at := storetest.Grant("job", 1).WindowStart
	for what, put := range harmless(at) {
		_, second, c := containers(t, 5*time.Second, func(path string) { put(t, open(t, Options{Path: path})) })
		documenttest.Equal(t, what+": it counts", counts(t, second, c), false)
		documenttest.Equal(t, what+": Warning()", second.Warning(), "")
	}
}

func TestWhatIsNotInForceKeepsNobodyFromReanchoring(t *testing.T) {
	for what, put := range harmless(noon) {
		l, c := wrong(t, noon, -time.Hour)
		put(t, l)
		must(t, what+": Reanchor()", documenttest.ErrorOf(l.Reanchor(t.Context())))
		documenttest.Equal(t, what+": store time", now(t, l).Time, c.Mock.Now())
	}
}

func TestWhatMayBeInForceIsSeenBelowWhatWorkersDoNotObey(t *testing.T) {
	term := granted(1, noon.Add(-time.Minute).Truncate(time.Millisecond), time.Hour)
	for what, row := range map[string]map[string]any{
		"a window that is too long": fields(granted(2, noon, 400*24*time.Hour), nil),
		"no claim":                  fields(granted(2, noon, time.Hour), map[string]any{"claim": ""}),
		"unreadable":                {"kind": "grant"},
	} {
		l, _ := wrong(t, noon, -time.Hour)
		must(t, "Append()", l.Append(t.Context(), term))
		plant(t, l.o.Path, "job", 2, row)
		_, err := l.Reanchor(t.Context())
		documenttest.Says(t, what+": Reanchor()", err, ErrInUse, `"job" until `+store.Format(term.WindowEnd), "record 1", "leasectl override --worker-type job")
	}
	l, _ := wrong(t, noon, -time.Hour)
	must(t, "Append()", l.Append(t.Context(), granted(6, noon.Add(-48*time.Hour), time.Minute)))
	must(t, "Append()", l.Append(t.Context(), granted(7, noon.Add(-24*time.Hour), time.Minute)))
	plant(t, l.o.Path, "job", 8, map[string]any{"kind": "grant"})
	_, err := l.Reanchor(t.Context())
	documenttest.Says(t, "Reanchor() below what can't be read", err, ErrInUse, `"job" by record 8, which can't be read`)
}

// Two lines of one boot: what is over by the one may be in force by the other.
func TestALedgerIsNotReanchoredWhileATermMayBeInForceByAnotherLineOfTheBoot(t *testing.T) {
	term := storetest.Grant("job", 1)
	_, second, c := containers(t, 2*time.Minute, func(path string) {
		must(t, "Append()", open(t, Options{Path: path}).Append(t.Context(), term))
	})
	pass(c, term.WindowEnd.Add(2*time.Minute-time.Millisecond))
	_, err := second.Reanchor(t.Context())
	documenttest.Says(t, "Reanchor()", err, ErrInUse, `"job" until `+store.Format(term.WindowEnd), "leasectl override --worker-type job")
	pass(c, term.WindowEnd.Add(2*time.Minute))
	must(t, "Reanchor() when it is over by both", documenttest.ErrorOf(second.Reanchor(t.Context())))
	wantLine(t, "afterwards", second.o, 0)
}

// A command that works by the first part of a term has leave up to the end of its last.
func TestATermGoesOnToTheEndOfWhatExtendsIt(t *testing.T) {
	start := storetest.Grant("job", 1).WindowStart
	first, extension, next := granted(1, start, 5*time.Minute), granted(2, start.Add(5*time.Minute), 5*time.Minute), granted(3, start.Add(10*time.Minute), 5*time.Minute)
	extension.Claim, extension.Token = first.Claim, first.Token
	next.Claim, next.Token = first.Claim, first.Token
	_, second, c := containers(t, -time.Hour, func(path string) {
		l := open(t, Options{Path: path})
		for _, r := range []store.Record{first, extension, next} {
			must(t, "Append()", l.Append(t.Context(), r))
		}
	})
	wantDoubt(t, "in its first part", second.o, time.Hour)
	_, err := second.Reanchor(t.Context())
	documenttest.Says(t, "Reanchor()", err, ErrInUse, `"job" until `+store.Format(next.WindowEnd), "record 3")
	pass(c, next.WindowEnd.Add(-time.Hour-time.Millisecond))
	wantDoubt(t, "right before its end", second.o, time.Hour)
	pass(c, next.WindowEnd.Add(-time.Hour))
	wantLine(t, "at its end", second.o, 0)
}

// Columns of others do no harm, whatever their names.
func TestColumnsOfOthersHideNoTerm(t *testing.T) {
	term := granted(1, noon.Add(-time.Minute).Truncate(time.Millisecond), time.Hour)
	l, _ := wrong(t, noon, -time.Hour)
	must(t, "Append()", l.Append(t.Context(), term))
	for _, name := range []string{"name", "firstSeq", "fromSeq", "n", "e", "s", "t", "k", "c", "i"} {
		execute(t, raw(t, l.o.Path), `ALTER TABLE WorkerLeases ADD COLUMN "`+name+`" TEXT`)
	}
	types, err := l.WorkerTypes(t.Context())
	if err != nil || len(types) != 1 {
		t.Errorf("WorkerTypes() = %q, %v, want one", types, err)
	}
	_, err = l.Reanchor(t.Context())
	documenttest.Says(t, "Reanchor()", err, ErrInUse, `"job" until `+store.Format(term.WindowEnd))
}

// Foreign names may be many.
func TestAReanchorLooksAtManyNames(t *testing.T) {
	l, _ := wrong(t, noon, -time.Hour)
	db := raw(t, l.o.Path)
	execute(t, db, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		INSERT INTO WorkerLeases (workerType, seq, kind) SELECT iif(i % 2, 'job-' || i, '!' || i), 9, 'grant' FROM n`)
	must(t, "PlanReanchor()", documenttest.ErrorOf(l.PlanReanchor(t.Context())))
}
