//go:build linux

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The scenario of escapes: commands start processes that try to outlive them, and are ended
// in all ways. None may work after the window, or when the lease is released.
const (
	escapeSlot = 3 * time.Second
	// escapeMargin is more than margin: to kill many processes on a machine that is busy
	// takes time, and none is given here after the window.
	escapeMargin = 500 * ms
	escapeLanes  = 6 // tries at once
	escapeKinds  = 3 // of each try
	// endLease is the way in which no process is struck, and the lease ends.
	endLease kind = "the lease ends"
)

var (
	// kindsOfEscape are those of testdata/escapes.c.
	kindsOfEscape = []string{"daemon", "thread", "deaf", "bomb", "hop", "group", "exec", "hidden", "sibling"}
	waysToEnd     = []kind{endLease, endLeasectl, killLeasectl, killGuard, killCommand}
)

//go:embed testdata/escapes.c
var escapesSource string

// flight is one try to escape as it is planned.
type flight struct {
	n     int
	world world
	how   kind
	kinds []string
	phase time.Duration // from when all kinds work to the strike
}

func (f flight) String() string {
	return fmt.Sprintf("try %d (%s; %v; %s)", f.n, strings.Join(f.kinds, ", "), f.world, f.how)
}

// plan draws tries, so that all worlds, ways and kinds come as often.
func planEscapes(random *rand.Rand, tries int, worlds []world) (plan []flight) {
	var kinds []string
	for n := range tries {
		f := flight{n: n, world: worlds[n%len(worlds)], how: waysToEnd[n/len(worlds)%len(waysToEnd)], phase: between(random, 0, 500*ms)}
		for len(f.kinds) < escapeKinds {
			if len(kinds) == 0 {
				for _, i := range random.Perm(len(kindsOfEscape)) {
					kinds = append(kinds, kindsOfEscape[i])
				}
			}
			f.kinds, kinds = append(f.kinds, kinds[0]), kinds[1:]
		}
		plan = append(plan, f)
	}
	return plan
}

// escaped is one try as it came out.
type escaped struct {
	flight
	*team

	void string // why the try shows nothing
}

// runEscapes tries as often as asked.
func runEscapes(ctx context.Context, h *harness) (*report, error) {
	worlds, err := worldsHere()
	if err != nil {
		return nil, err
	}
	if err := h.buildEscapes(ctx); err != nil {
		return nil, err
	}
	v, err := h.escapes(ctx, planEscapes(drawer(h.seed, "escapes"), h.tries, worlds))
	if err != nil {
		return nil, err
	}
	return v.report(), nil
}

// buildEscapes builds the command, where other users can execute it and write to the store.
func (h *harness) buildEscapes(ctx context.Context) error {
	c := exec.CommandContext(ctx, "gcc", "-pthread", "-o", h.escapesPath(), "-x", "c", "-")
	c.Stdin = strings.NewReader(escapesSource)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build testdata/escapes.c: %w\n%s", err, out)
	}
	return errors.Join(os.Chmod(h.dir, 0o777), os.Chmod(h.program, 0o755), os.Chmod(h.escapesPath(), 0o755))
}

func (h *harness) escapesPath() string { return filepath.Join(h.dir, "escapes") }

// escapes makes tries side by side, and judges them when all are over.
func (h *harness) escapes(ctx context.Context, plan []flight) (*escapeVerdict, error) {
	done, err := sideBySide(ctx, escapeLanes, plan, h.escape)
	for _, e := range done {
		if e.team != nil {
			defer e.close(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	// What has escaped works on, and is seen.
	if !pause(ctx, 500*ms) {
		return nil, ctx.Err()
	}
	if text := h.leftBehind(); text != "" {
		h.bad("left behind: %s", text)
	}
	v := &escapeVerdict{verdict: h.verdict()}
	for _, e := range done {
		left, err := e.evidence(ctx)
		if err != nil {
			return nil, err
		}
		v.read(e, left, &h.gauge)
	}
	v.judgeExtent(plan)
	return v, nil
}

// escape is one try, with its own worker type.
func (h *harness) escape(ctx context.Context, f flight) (escaped, error) {
	of := workerType{
		name: fmt.Sprintf("escape-%03d", f.n), interval: escapeSlot, tieBreak: "sticky", control: -1, behavior: strings.Join(f.kinds, ","),
		flags:   []string{"--margin", escapeMargin.String()},
		command: h.escapesPath(), under: f.world.program(h.self),
	}
	got := escaped{flight: f}
	t, err := h.newTeam(ctx, of, 1)
	if err != nil {
		return got, err
	}
	got.team = t
	if err := h.shareFiles(of); err != nil {
		return got, err
	}
	defer t.kill()
	w := t.workers[0]
	if err := w.start(); err != nil {
		return got, err
	}
	if err := t.await(ctx, f.String()+": all kinds work", t.allWork(f.kinds)); err != nil {
		got.void = err.Error()
		return got, ctx.Err()
	}
	if !pause(ctx, f.phase) {
		return got, ctx.Err()
	}
	if !w.struckBy(f.how) {
		got.void = "there was nothing to strike"
	}
	// The window that was in force then ends with the slot.
	if _, err := t.nextSlot(ctx); err != nil {
		return got, err
	}
	if err := w.wait(w.retire(unix.SIGTERM, endLeasectl)); err != nil {
		h.bad("%v: %v after SIGTERM", f, err)
	}
	return got, nil
}

// shareFiles lets every user write to the store and to the log of a worker type.
func (h *harness) shareFiles(of workerType) error {
	log, err := os.OpenFile(h.workLog(of), os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_ = log.Close()
	files, err := filepath.Glob(filepath.Join(h.dir, "leases.db*"))
	for _, name := range append(files, log.Name()) {
		if e := os.Chmod(name, 0o666); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// allWork reports whether all kinds of processes have worked under one lease.
func (t *team) allWork(kinds []string) func() bool {
	worked := map[int64]map[string]bool{}
	return func() bool {
		lines, err := t.log.next()
		if err != nil {
			t.bad("%s: %v", t.of.name, err)
		}
		for _, l := range lines {
			if worked[l.token] == nil {
				worked[l.token] = map[string]bool{}
			}
			worked[l.token][l.role] = true
		}
		for _, roles := range worked {
			if !slices.ContainsFunc(kinds, func(kind string) bool { return !roles[kind] }) {
				return true
			}
		}
		return false
	}
}

// struckBy strikes a worker in one of waysToEnd, and reports whether it was there.
func (w *worker) struckBy(how kind) bool {
	d := deeds[how]
	switch {
	case d.end != 0:
		return w.retire(d.end, how) != nil
	case d.kill != nobodys:
		return familyOf(w.pid()).kill(d.kill)
	}
	return true
}
