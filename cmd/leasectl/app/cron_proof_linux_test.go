package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/postgres"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
)

// proof is how much a test of leasectl cron shows. make cron chooses it by SLOTLEASE_CRON=postgres,100,100.
type proof struct {
	store       string
	tries, jobs int
	chosen      bool
}

// every is the length of the slots: ten runs begin in a second, or three beside other tests. The peer of MongoDB gets twenty times
// as long: it looks at each record of a collection to find the newest of a type.
func (p proof) every() time.Duration {
	every := time.Duration(p.jobs) * time.Second / 10
	if !p.chosen {
		every = time.Duration(p.jobs) * time.Second / 3
	}
	if p.store == "mongo" {
		every *= 20
	}
	return every
}

// cronProof is what was chosen, or else so many tries and jobs on SQLite.
func cronProof(t *testing.T, tries, jobs int) proof {
	t.Helper()
	p := proof{"sqlite", tries, jobs, false}
	chosen, is := os.LookupEnv("SLOTLEASE_CRON")
	if !is {
		return p
	}
	name, numbers, _ := strings.Cut(chosen, ",")
	p.store, p.chosen = name, true
	if _, err := fmt.Sscanf(numbers, "%d,%d", &p.tries, &p.jobs); err != nil || cronStores[p.store] == nil || p.jobs < 10 {
		t.Fatalf("SLOTLEASE_CRON=%s: want sqlite, postgres or mongo, a number of tries, and one of jobs of 10 or more, as in postgres,100,100", chosen)
	}
	return p
}

// cronStores are the stores on which the proofs of leasectl cron can be had.
var cronStores = map[string]func(t *testing.T) (l store.Ledger, uri string){
	"sqlite": newLedger,
	"mongo":  mongoLedger,
	"postgres": func(t *testing.T) (store.Ledger, string) {
		t.Helper()
		uri := postgrespeer.Database(t)
		l, err := postgres.Open(t.Context(), postgres.Options{URI: uri})
		must(t, err)
		t.Cleanup(func() { _ = l.Close(context.Background()) })
		return l, uri
	},
}

// ledger is an initialised ledger on the chosen store.
func (p proof) ledger(t *testing.T) (l store.Ledger, storeArg string) {
	t.Helper()
	l, storeArg = cronStores[p.store](t)
	mustRun(t, nil, "init", "--store", storeArg)
	return l, storeArg
}

// die kills leasectl with all that descends from it, in one instant: what is stopped can end nothing. It returns how many
// processes these were.
func (p *process) die() int {
	var all []int
	for before := -1; before < len(all); {
		before, all = len(all), tree(p.cmd.Process.Pid)
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
	}
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-p.done
	return len(all)
}

// tree are a process and all that descend from it.
func tree(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i]))
		for _, name := range threads {
			children, _ := os.ReadFile(name)
			for child := range strings.FieldsSeq(string(children)) {
				if n, err := strconv.Atoi(child); err == nil {
					all = append(all, n)
				}
			}
		}
	}
	return all
}
