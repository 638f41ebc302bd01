//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/store"
)

// settings are the options of a run.
type settings struct {
	scenario string
	store    string
	tries    int
	duration time.Duration
	seed     uint64
	keep     bool
	older    string // another leasectl, beside this one
	overlay  string // of tests, to build another leasectl: see go help build
}

// scenario is one kind of run.
type scenario struct {
	what    string        // what -tries counts; empty: it takes -duration instead
	tries   int           // the default
	each    time.Duration // how long one try may take
	older   bool          // it works beside an older leasectl, too
	proxied []workerType  // have a proxy for each worker
	run     func(ctx context.Context, h *harness) (*report, error)
}

// scenarios are all, by name.
var scenarios = map[string]scenario{
	"chaos":    {proxied: workerTypes, run: runChaos},
	"takeover": {what: "deaths, and as many orderly ends", tries: 100, each: 5 * time.Second, run: runTakeover},
	"rolling":  {what: "deployments of a job, and of a leader", tries: 20, each: 30 * time.Second, older: true, run: runRolling},
	"done":     {what: "kills", tries: 200, each: 5 * time.Second, older: true, run: runDone},
	"overrun":  {what: "runs", tries: 40, each: 10 * time.Second, older: true, run: runOverrun},
	"escapes":  {what: "commands whose processes try to escape", tries: 200, each: 5 * time.Second, run: runEscapes},
}

// harness is what a scenario runs in: a folder, a leasectl, a store, and the processes
// that were started.
type harness struct {
	settings
	gauge

	dir     string
	program string // leasectl
	self    string // this program
	backend backend

	mu      sync.Mutex
	workers []*worker
	wrong   []string // what went wrong during the run
}

// backend is a store that can be struck.
type backend interface {
	// address is --store for a worker.
	address(t workerType, index int) string
	// strike causes a fault of the store or the network. It returns the function that
	// ends the fault, or nil if it found nothing to strike.
	strike(f fault, t workerType, index int) (undo func() error, err error)
	// open opens the ledger of a worker type, past the faults.
	open(ctx context.Context, t workerType) (store.Ledger, error)
	// close ends what was started.
	close()
}

// run is a whole run, from the building of leasectl to the verdict.
func run(ctx context.Context, o settings) (err error) {
	dir, err := os.MkdirTemp("", "slotlease-chaos-"+o.store+"-")
	if err != nil {
		return err
	}
	h := &harness{settings: o, dir: dir, program: filepath.Join(dir, "leasectl")}
	chosen := scenarios[o.scenario]
	limit := 3*time.Minute + time.Duration(o.tries)*chosen.each
	if chosen.what == "" {
		limit += o.duration
		fmt.Printf("%s on %s for %v, seed %d\n", o.scenario, o.store, o.duration, o.seed)
	} else {
		fmt.Printf("%s on %s, %d %s, seed %d\n", o.scenario, o.store, o.tries, chosen.what, o.seed)
	}
	defer func() {
		if err != nil || o.keep {
			fmt.Printf("\nKept: %s (seed %d)\n", dir, o.seed)
			return
		}
		err = os.RemoveAll(dir)
	}()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if h.self, err = os.Executable(); err != nil {
		return err
	}
	if err := h.build(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.clear()) }()
	if of, ok := serverStores[o.store]; ok {
		h.backend, err = newServerBackend(ctx, of, filepath.Join(dir, "server"), chosen.proxied)
	} else {
		h.backend = &sqliteBackend{dir: dir, self: h.self}
	}
	if err != nil {
		return err
	}
	defer h.backend.close()
	go h.feel(ctx)
	r, err := chosen.run(ctx, h)
	if err != nil {
		return err
	}
	fmt.Print(r.text.String())
	if err := figures.Save(r.Proof); err != nil {
		return err
	}
	if r.failed {
		return errVerdict
	}
	return nil
}

// build builds the leasectl that opens the store.
func (h *harness) build(ctx context.Context) error {
	folder, program := "../..", "./cmd/leasectl"
	if module := serverStores[h.store].module; module != "" {
		folder, program = filepath.Join(folder, module), "./leasectl"
	}
	c := exec.CommandContext(ctx, "go", "build", "-overlay", h.overlay, "-o", h.program, program)
	c.Dir = folder
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build leasectl: %w\n%s", err, out)
	}
	return nil
}

// clear ends all that still runs.
func (h *harness) clear() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.workers {
		w.dismiss()
	}
	return killAll()
}

func (h *harness) bad(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
}

// fail notes what the harness itself could not do.
func (h *harness) fail(err error) {
	if err != nil {
		h.bad("the harness: %v", err)
	}
}

// verdict is one with what went wrong during the run.
func (h *harness) verdict() verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	return verdict{settings: h.settings, wrong: slices.Clone(h.wrong), stalls: h.lates()}
}

// newWorker makes a worker, not yet started.
func (h *harness) newWorker(of workerType, i int) *worker {
	w := &worker{h: h, of: of, index: i}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.workers = append(h.workers, w)
	return w
}

// openNew opens the ledger of a worker type that was never used.
func (h *harness) openNew(ctx context.Context, of workerType) (store.Ledger, error) {
	l, err := h.backend.open(ctx, of)
	if err != nil {
		return nil, err
	}
	if err := l.Init(ctx); err != nil {
		return nil, errors.Join(err, l.Close(ctx))
	}
	return l, nil
}

// workLog is the log of the commands of a worker type.
func (h *harness) workLog(of workerType) string { return filepath.Join(h.dir, of.name+".work.log") }

func (h *harness) fencePath() string { return filepath.Join(h.dir, "fence.db") }

// await waits until a condition holds, for 30 s at most, or longer on a slow store.
func (h *harness) await(ctx context.Context, what string, ok func() bool) error {
	patience := 30 * time.Second * slower(h.store)
	for limit := boottime() + patience; !ok(); {
		if boottime() > limit {
			return fmt.Errorf("%s: not within %v", what, patience)
		}
		if !pause(ctx, 50*ms) {
			return ctx.Err()
		}
	}
	return nil
}

// leave ends workers in order, and checks that they leave no process.
func (h *harness) leave(ctx context.Context, all []*worker) {
	var ends []<-chan struct{}
	for _, w := range all {
		ends = append(ends, w.retire(unix.SIGTERM, endLeasectl))
	}
	for i, gone := range ends {
		if err := all[i].wait(gone); err != nil {
			h.bad("%v after SIGTERM, without any fault", err)
		}
	}
	if err := h.await(ctx, "no process is left", func() bool { return h.leftBehind() == "" }); err != nil {
		h.bad("%v: %s", err, h.leftBehind())
	}
}

// leftBehind lists the processes that still run below this one, and should not.
func (h *harness) leftBehind() string {
	var found []string
	for _, pid := range left() {
		if text := commandLine(pid); strings.Contains(text, guardName) || strings.Contains(text, h.program) || h.older != "" && strings.Contains(text, h.older) || strings.Contains(text, h.escapesPath()) || strings.HasSuffix(text, "\x00"+workCommand+"\x00") {
			found = append(found, fmt.Sprintf("pid %d (%s)", pid, strings.ReplaceAll(strings.TrimRight(text, "\x00"), "\x00", " ")))
		}
	}
	return strings.Join(found, ", ")
}
