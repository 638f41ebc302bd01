//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

// settings are what a run is asked for.
type settings struct {
	scenario string
	store    string
	tries    int
	duration time.Duration
	seed     uint64
	keep     bool
	verbose  bool
	root     string
}

// scenario is what is played.
type scenario struct {
	what    string       // what -tries counts; empty: it takes -duration instead
	tries   int          // unless others are asked for
	proxied []workerType // have a proxy for each worker
	play    func(ctx context.Context, t *theatre) (report, error)
	longest func(o settings) time.Duration
}

// scenarios are all, by name.
var scenarios = map[string]scenario{
	"chaos": {proxied: cast, play: playChaos, longest: func(o settings) time.Duration { return o.duration + 3*time.Minute }},
	"takeover": {what: "deaths, and as many orderly ends", tries: 100, play: playTakeover, longest: func(o settings) time.Duration {
		return 3*time.Minute + time.Duration(o.tries)*5*time.Second
	}},
	"rolling": {what: "rounds", tries: 20, play: playRolling, longest: func(o settings) time.Duration {
		return 3*time.Minute + time.Duration(o.tries)*time.Minute
	}},
	"done": {what: "kills", tries: 200, play: playDone, longest: func(o settings) time.Duration {
		return 3*time.Minute + time.Duration(o.tries)*5*time.Second
	}},
}

// report is what a scenario has shown.
type report interface {
	print(to io.Writer)
	proof() figures.Proof
	failed() bool
}

// theatre is where scenarios play: a folder, a leasectl, a store, and the processes
// that were started.
type theatre struct {
	settings

	dir     string
	program string // leasectl
	self    string // this program
	spawner *spawner
	stage   stage

	mu    sync.Mutex
	hired []*worker
	wrong []string // what was seen to be wrong while it ran
}

// run is a whole run, from the building of leasectl to the verdict.
func run(ctx context.Context, o settings) (err error) {
	dir, err := os.MkdirTemp("", "slotlease-chaos-"+o.store+"-")
	if err != nil {
		return err
	}
	t := &theatre{settings: o, dir: dir, program: filepath.Join(dir, "leasectl")}
	chosen := scenarios[o.scenario]
	if chosen.what == "" {
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
	ctx, cancel := context.WithTimeout(ctx, chosen.longest(o))
	defer cancel()
	if t.self, err = os.Executable(); err != nil {
		return err
	}
	if err := t.build(ctx); err != nil {
		return err
	}
	if t.spawner, err = newSpawner(); err != nil {
		return err
	}
	defer t.spawner.close()
	defer func() { err = errors.Join(err, t.clear()) }()
	if o.store == "mongo" {
		t.stage, err = newMongoStage(dir, t.spawner, chosen.proxied)
	} else {
		t.stage = newSQLiteStage(dir, t.self, t.spawner)
	}
	if err != nil {
		return err
	}
	defer t.stage.close()
	shown, err := chosen.play(ctx, t)
	if err != nil {
		return err
	}
	shown.print(os.Stdout)
	if err := figures.Save(shown.proof()); err != nil {
		return err
	}
	if shown.failed() {
		return errVerdict
	}
	return nil
}

// build builds leasectl and what else is run.
func (t *theatre) build(ctx context.Context) error {
	c := exec.CommandContext(ctx, "go", "build", "-o", t.program, "./cmd/leasectl")
	c.Dir = t.root
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build leasectl: %w\n%s", err, out)
	}
	if t.store == "mongo" {
		// It may have to be built, too.
		if _, err := mongopeer.Program(); err != nil {
			return err
		}
	}
	return nil
}

// clear ends all that still runs.
func (t *theatre) clear() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.hired {
		w.dismiss()
	}
	return t.spawner.killAll()
}

func (t *theatre) bad(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
}

// hire makes a worker, not yet started, whose commands write to a log.
func (t *theatre) hire(of workerType, i int, log string) *worker {
	w := &worker{
		of: of, index: i, program: t.program, args: of.arguments(i, t.stage.address(of, i), t.self), spawner: t.spawner,
		env: append(os.Environ(), "GOTRACEBACK=all", logVariable+"="+log, fenceVariable+"="+t.stage.fence(), partVariable+"="+of.part),
		log: filepath.Join(t.dir, of.instance(i)+".log"),
		deaths: func(w *worker, life incarnation) {
			t.bad("leasectl of %s (pid %d) ended by itself: %s", w.name(), life.pid, life.result)
			if life.ended-life.started < time.Second {
				return // It would do so again and again.
			}
			if err := w.start(); err != nil {
				t.bad("the harness: %v", err)
			}
		},
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hired = append(t.hired, w)
	return w
}

// openNew opens the ledger of a worker type that was never used.
func (t *theatre) openNew(ctx context.Context, of workerType) (store.Ledger, error) {
	l, err := t.stage.open(ctx, of)
	if err != nil {
		return nil, err
	}
	if err := l.Init(ctx); err != nil {
		return nil, errors.Join(err, l.Close(ctx))
	}
	return l, nil
}

// workLog is the log of the commands of one worker type.
func (t *theatre) workLog(of workerType) string { return filepath.Join(t.dir, of.name+".work.log") }

// await waits until something is so, for 30 s at most.
func (t *theatre) await(ctx context.Context, what string, ok func() bool) error {
	for limit := boottime() + 30*time.Second; !ok(); {
		if boottime() > limit {
			return fmt.Errorf("%s: not within 30 s", what)
		}
		if !pause(ctx, 50*ms) {
			return ctx.Err()
		}
	}
	return nil
}

// leave ends workers in order, and looks whether nothing of them is left behind.
func (t *theatre) leave(ctx context.Context, all []*worker) {
	var ends []<-chan struct{}
	for _, w := range all {
		if gone := w.retire(unix.SIGTERM, endLeasectl); gone != nil {
			ends = append(ends, gone)
		}
	}
	for _, gone := range ends {
		select {
		case <-gone:
		case <-time.After(patience):
			t.bad("a leasectl doesn't end within %v of SIGTERM, without any fault", patience)
		}
	}
	if err := t.await(ctx, "nothing is left behind", func() bool { return t.leftBehind() == "" }); err != nil {
		t.bad("%v: %s", err, t.leftBehind())
	}
}

// leftBehind tells of the processes that still run below this one, and should not.
func (t *theatre) leftBehind() string {
	var found []string
	for _, pid := range t.spawner.left() {
		if text := commandLine(pid); strings.Contains(text, guardName) || strings.Contains(text, t.program) || strings.HasSuffix(text, "\x00"+workCommand+"\x00") {
			found = append(found, fmt.Sprintf("pid %d (%s)", pid, strings.ReplaceAll(strings.TrimRight(text, "\x00"), "\x00", " ")))
		}
	}
	return strings.Join(found, ", ")
}
