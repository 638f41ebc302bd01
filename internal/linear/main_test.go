package linear_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/workload"
	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
)

// standardOps is the number of operations to check: 7 in 10 in memory, 2 on
// SQLite, 1 on the MongoDB peer, and besides a fortieth on each further server. make linear checks 120,000. The number of operations that
// the processes on SQLite come to is not known before, so a run fails only if it checked
// fewer than five sixths.
const standardOps = 36_000

// least is the number of operations that must be checked if the given number is asked for.
func least(all int) int { return all * 5 / 6 }

// shortened reports whether the runs check a tenth, and need not come to a number.
func shortened() bool { return race.Enabled || testing.Short() || suites.Quick() }

// patience bounds the search for an explanation of one part of a history.
const patience = time.Minute

func TestMain(m *testing.M) {
	if text := os.Getenv(childVar); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	err := table.report()
	if all, wrong := workload.Operations(standardOps); !shortened() && wrong == nil {
		err = errors.Join(err, table.short(least(all)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// share is how many operations a run is to check, given its share in ten.
func share(t *testing.T, tenths int) int {
	t.Helper()
	all, err := workload.Operations(standardOps)
	must(t, err)
	if shortened() {
		all /= 10
	}
	return max(all*tenths/10, 1)
}

// check demands that a history is linearizable.
func check(t *testing.T, h *linear.History) linear.Result {
	t.Helper()
	result, err := h.Check(patience)
	if err != nil {
		t.Errorf("Check() = %v", err)
	}
	for _, v := range result.Violations {
		t.Log(v)
	}
	return result
}

// tally adds up what was checked, by store.
type tally struct {
	mu   sync.Mutex
	rows map[string]linear.Result
}

var table tally

func (y *tally) add(store string, r linear.Result) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.rows == nil {
		y.rows = map[string]linear.Result{}
	}
	sum := y.rows[store]
	sum.Add(r)
	y.rows[store] = sum
}

// The rows of the table.
const (
	rowMemory = "memory, goroutines"
	rowFaults = "memory, injected faults"
	rowSQLite = "SQLite, processes killed"
	rowMongo  = "MongoDB peer, killed and paused"

	rowPostgres = "PostgreSQL, killed"
	rowMySQL    = "MariaDB with a binary log, killed"
	rowRedis    = "Redis, killed"
	rowS3       = "S3 peer, killed"
	rowAzblob   = "Azurite, killed"
	rowCosmos   = "Cosmos DB peer, killed"
)

// The rows that share the number of operations, and those of servers that may be missing, which
// come on top.
var (
	shared  = []string{rowMemory, rowFaults, rowSQLite, rowMongo}
	further = []string{rowPostgres, rowMySQL, rowRedis, rowS3, rowAzblob, rowCosmos}
)

// all adds rows up, and reports whether none is missing: tests may have been left
// out, failed, or skipped.
func (y *tally) all(names []string) (sum linear.Result, whole bool) {
	whole = true
	for _, name := range names {
		r, ok := y.rows[name]
		whole = whole && ok
		sum.Add(r)
	}
	return sum, whole
}

// short returns an error if the shared rows are whole and fewer operations were checked
// than the least number.
func (y *tally) short(least int) error {
	if sum, whole := y.all(shared); whole && sum.Searched < least {
		return fmt.Errorf("%d operations were checked in all, want %d", sum.Searched, least)
	}
	return nil
}

// report prints the table, and saves it if it is whole.
func (y *tally) report() error {
	if len(y.rows) == 0 {
		return nil
	}
	text := "operations\tchecked\tunknown\tconflicts\tpartitions\tillegal\tundecided\t  store\n"
	row := func(name string, r linear.Result) {
		text += fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t%d\t%d\t  %s\n", r.Operations, r.Searched, r.Unknown, r.Conflicts, r.Partitions, r.Illegal, r.Undecided, name)
	}
	proof := figures.Proof{Name: "linearizability", Command: "make linear"}
	figure := func(what string, n int) {
		proof.Figures = append(proof.Figures, figures.Figure{What: what, Value: strconv.Itoa(n)})
	}
	names := slices.Concat(shared, further)
	for _, name := range names {
		if r, ok := y.rows[name]; ok {
			row(name, r)
			figure("operations checked on "+name, r.Searched)
		}
	}
	sum, whole := y.all(names)
	row("all", sum)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, err := io.WriteString(w, text)
	if err := errors.Join(err, w.Flush()); err != nil || !whole {
		return err
	}
	figure("operations checked in all", sum.Searched)
	figure("of unknown outcome, with those that nobody read and are left out", sum.Unknown)
	figure("answered with a conflict", sum.Conflicts)
	figure("illegal histories", sum.Illegal)
	figure("undecided histories", sum.Undecided)
	return figures.Save(proof)
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestARunThatChecksFewerThanIsClaimedFails(t *testing.T) {
	rows := func(memory, faults, sqlite, mongo int) *tally {
		y := &tally{}
		for name, n := range map[string]int{rowMemory: memory, rowFaults: faults, rowSQLite: sqlite, rowMongo: mongo} {
			if n > 0 {
				y.add(name, linear.Result{Operations: n, Searched: n})
			}
		}
		return y
	}
	if err := rows(40_000, 40_000, 10_000, 9_999).short(least(120_000)); err == nil {
		t.Error("short(100,000) = nil for 99,999 operations in all, want an error")
	}
	for name, y := range map[string]*tally{"enough": rows(40_000, 40_000, 10_000, 10_000), "a row is missing": rows(1, 1, 1, 0), "nothing": {}} {
		if err := y.short(least(120_000)); err != nil {
			t.Errorf("%s: short(100,000) = %v, want nil", name, err)
		}
	}
}
