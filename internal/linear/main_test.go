package linear_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/internal/linear"
)

// opsVar scales the runs: about so many operations are checked in all, 7 in 10
// in memory, 2 on SQLite, 1 on the MongoDB peer.
const (
	opsVar      = "SLOTLEASE_LINEAR_OPS"
	standardOps = 120_000
)

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
	if err := table.report(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// share is how many operations a run is to check, given its share in ten.
func share(t *testing.T, tenths int) int {
	t.Helper()
	all := standardOps
	if text := os.Getenv(opsVar); text != "" {
		var err error
		if all, err = strconv.Atoi(text); err != nil || all < 1 {
			t.Fatalf("%s=%s: must be a positive number", opsVar, text)
		}
	} else if raceEnabled || testing.Short() {
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
	for i, v := range result.Violations {
		path := filepath.Join(t.ArtifactDir(), fmt.Sprintf("violation-%d.html", i))
		draw(t, v, path)
		t.Logf("%v\nchart in %s, kept with -artifacts", v, path)
	}
	return result
}

func draw(t *testing.T, v linear.Violation, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(v.Visualize(f), f.Close()); err != nil {
		t.Error(err)
	}
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
)

// report prints the table, and saves it if it is whole.
func (y *tally) report() error {
	if len(y.rows) == 0 {
		return nil
	}
	text := "operations\tunknown\tconflicts\tpartitions\tillegal\tundecided\t  store\n"
	row := func(name string, r linear.Result) {
		text += fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t%d\t  %s\n", r.Operations, r.Unknown, r.Conflicts, r.Partitions, r.Illegal, r.Undecided, name)
	}
	var sum linear.Result
	proof := figures.Proof{Name: "linearizability", Command: "go test -run Linearizable -v ./internal/linear"}
	figure := func(what string, n int) {
		proof.Figures = append(proof.Figures, figures.Figure{What: what, Value: strconv.Itoa(n)})
	}
	whole := true
	for _, name := range []string{rowMemory, rowFaults, rowSQLite, rowMongo} {
		r, ok := y.rows[name]
		whole = whole && ok
		if ok {
			row(name, r)
			sum.Add(r)
			figure("operations checked on "+name, r.Operations)
		}
	}
	row("all", sum)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, err := io.WriteString(w, text)
	if err := errors.Join(err, w.Flush()); err != nil || !whole {
		return err
	}
	figure("operations checked in all", sum.Operations)
	figure("of unknown outcome", sum.Unknown)
	figure("answered with a conflict", sum.Conflicts)
	figure("illegal histories", sum.Illegal)
	figure("undecided histories", sum.Undecided)
	return figures.Save(proof)
}
