package app

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
)

// These name the programs that make cron-figures measures: a leasectl as it is released, for a test has more in it, and
// supercronic, if it is there.
const (
	programVariable     = "SLOTLEASE_LEASECTL"
	supercronicVariable = "SLOTLEASE_SUPERCRONIC"
)

// The bounds of a process with 100 jobs.
const (
	maxMemory = 80 << 20
	maxIdle   = 0.005 // of a core
	idleFor   = time.Minute
)

// A process of 100 jobs is measured while none of them runs, and when all of them begin in the same second, on each store, and
// beside supercronic, which runs them on one machine.
func TestFiguresOfAProcessOfManyJobs(t *testing.T) {
	leasectl := os.Getenv(programVariable)
	if leasectl == "" {
		t.Skipf("%s names no leasectl: make cron-figures", programVariable)
	}
	const jobs = 100
	dir := t.TempDir()
	idle, busy, marks := filepath.Join(dir, "idle.crontab"), filepath.Join(dir, "busy.crontab"), filepath.Join(dir, "marks")
	never := (time.Now().UTC().Hour() + 12) % 24
	var idly, busily strings.Builder
	for i := range jobs {
		fmt.Fprintf(&idly, "%d %d * * * : %d\n", i%60, never, i)
		fmt.Fprintf(&busily, "* * * * * date +\\%%s.\\%%N >> %s; : %d\n", marks, i)
	}
	for name, text := range map[string]string{idle: idly.String(), busy: busily.String()} {
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	type one struct {
		name, ready string
		args        []string
		bounded     bool
	}
	var all []one
	for name := range cronStores {
		_, storeArg := proof{store: name}.ledger(t)
		all = append(all, one{"leasectl cron, " + name, "ready: ", []string{leasectl, "cron", "--store", storeArg}, true})
	}
	slices.SortFunc(all, func(a, b one) int { return strings.Compare(a.name, b.name) })
	if supercronic := os.Getenv(supercronicVariable); supercronic != "" {
		all = append(all, one{"supercronic", "read crontab", []string{supercronic}, false})
	}
	var table strings.Builder
	for _, o := range all {
		p := measured(t, append(slices.Clone(o.args), idle), o.ready)
		before := p.used()
		time.Sleep(idleFor)
		share := (p.used() - before).Seconds() / idleFor.Seconds()
		memory, own := p.memory()
		p.end()
		p = measured(t, append(slices.Clone(o.args), busy), o.ready)
		next := time.Now().Truncate(time.Minute).Add(time.Minute)
		time.Sleep(time.Until(next.Add(-time.Second)))
		if err := os.WriteFile(marks, nil, 0o600); err != nil { // A new job may have begun late for the minute before.
			t.Fatal(err)
		}
		before = p.used()
		for len(procs.Lines(marks)) < jobs && time.Since(next) < 55*time.Second { // Then the next minute's begin.
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		took := p.used() - before
		peak, _ := p.memory()
		p.end()
		begun := delays(t, procs.Lines(marks), next)
		all := fmt.Sprintf("%.1f s", begun[len(begun)-1].Seconds())
		if len(begun) < jobs {
			all = fmt.Sprintf("%d in a minute", len(begun))
		}
		fmt.Fprintf(&table, "| %s | %d MB | %d MB | %.2f %% | %d MB | %.1f s | %s | %d ms |\n", o.name, memory>>20, own>>20, 100*share, peak>>20, begun[len(begun)/2].Seconds(), all, int(took.Milliseconds())/len(begun))
		if o.bounded && (memory > maxMemory || peak > maxMemory || share > maxIdle) {
			t.Errorf("%s: %d MB, %d MB when all jobs begin, and %.2f %% of a core while none runs, want at most %d MB and %.1f %%", o.name, memory>>20, peak>>20, 100*share, maxMemory>>20, 100*maxIdle)
		}
	}
	t.Logf("%d jobs\n| | Memory | of its own | Idle, of a core | Memory when all begin | Half have begun after | All | Processor time of a start |\n|---|---|---|---|---|---|---|---|\n%s", jobs, &table)
}

// measuredProcess is a program that is measured.
type measuredProcess struct {
	t   *testing.T
	cmd *exec.Cmd
}

// measured starts a program, and waits until it is ready.
func measured(t *testing.T, argv []string, ready string) *measuredProcess {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must(t, err)
	t.Cleanup(func() { _ = log.Close() })
	p := &measuredProcess{t: t, cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	procs.Eventually(t, argv[0]+" is ready", func() bool {
		text, err := os.ReadFile(log.Name())
		return err == nil && bytes.Contains(text, []byte(ready))
	})
	time.Sleep(5 * time.Second) // What it does at its start isn't its rest.
	return p
}

// used is the processor time that it has taken, with that of its commands that have ended.
func (p *measuredProcess) used() (all time.Duration) {
	p.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	for _, ticks := range fields[11:15] {
		n, err := strconv.ParseInt(ticks, 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		all += time.Duration(n) * 10 * time.Millisecond
	}
	return all
}

// memory is the most that it has had in memory, in bytes, and what of that is now its own: the rest are pages of its program.
func (p *measuredProcess) memory() (most, own int64) {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kb int64
		switch name, value, _ := strings.Cut(line, ":"); name {
		case "VmHWM":
			_, _ = fmt.Sscan(value, &kb)
			most = kb << 10
		case "RssAnon":
			_, _ = fmt.Sscan(value, &kb)
			own = kb << 10
		}
	}
	return most, own
}

func (p *measuredProcess) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait()
}

// delays are how long after a time the commands began that have marked it, in order.
func delays(t *testing.T, marks []string, from time.Time) (all []time.Duration) {
	t.Helper()
	if len(marks) == 0 {
		t.Fatal("no command has begun")
	}
	for _, line := range marks {
		seconds, err := strconv.ParseFloat(line, 64)
		if err != nil {
			t.Fatalf("the mark %q: %v", line, err)
		}
		all = append(all, time.UnixMicro(int64(seconds*1e6)).Sub(from))
	}
	slices.Sort(all)
	return all
}
