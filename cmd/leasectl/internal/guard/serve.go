//go:build unix && !aix

package guard

import (
	"encoding/gob"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
)

// A process that was started as a guard becomes it while Go initialises this package: a command
// waits for its guard, and all that the stores' packages do at a start, which comes after this, is most of
// what the program takes. Under the race detector that was 250 of 280 ms.
func init() {
	if len(os.Args) == 1 && os.Args[0] == marker {
		os.Exit(serve())
	}
}

// serve is the guard process. It returns its exit code: that of the command as
// [Status.ExitCode] has it, or 125 if there was none.
func serve() int {
	const noCommand = 125
	for fd := fdOrders; fd <= fdStderr; fd++ {
		syscall.CloseOnExec(fd)
	}
	chld := make(chan os.Signal, 1)
	signal.Notify(chld, syscall.SIGCHLD)
	asked := notifyEnd()
	reports := gob.NewEncoder(os.NewFile(fdReports, "reports"))
	fail := func(r report) int {
		// A report that no program reads changes nothing, here and below.
		_ = reports.Encode(r)
		return noCommand
	}
	if err := prepare(); err != nil {
		return fail(report{Failure: err.Error()})
	}
	due, err := newAlarm()
	if err != nil {
		return fail(report{Failure: err.Error()})
	}
	orders := gob.NewDecoder(os.NewFile(fdOrders, "orders"))
	var first order
	if err := orders.Decode(&first); err != nil || first.Verb != runVerb {
		return noCommand
	}
	w := watch{deadline: first.Deadline, notice: first.Notice, grace: first.Grace}
	if w.at(Boottime()) != letRun {
		return fail(report{TooLate: true})
	}
	reserveThreads()
	incoming := receive[order](orders)
	job := family{cgroup: makeCgroup()}
	if first.User != nil {
		keepFiles()
	}
	job.spawning = spawn(first, job.cgroup)
	for {
		due.set(w.next())
		over := Reason(0) // why the command is over
		select {
		case <-due.C:
		case <-chld:
			job.reap()
		case <-asked:
			w.stop(Boottime(), 0)
		case o, ok := <-incoming:
			over = job.obey(o, ok, &w)
		case s := <-job.spawning:
			job.spawning = nil
			if s.err != nil {
				return fail(describe(first, s.err))
			}
			job.main, job.cgroup = s.pid, s.cgroup
			_ = reports.Encode(report{PID: s.pid, Cgroup: s.cgroup})
		}
		if over == 0 {
			over = job.look(&w)
		}
		if over != 0 {
			return job.finish(over, reports)
		}
	}
}

// obey does what an order asks, if the program still gives any. It returns why the command is to be killed at once, or 0.
func (f *family) obey(o order, given bool, w *watch) Reason {
	switch {
	case !given:
		return ParentGone
	case o.Verb == stopVerb:
		w.stop(Boottime(), o.Deadline)
	case o.Verb == extendVerb:
		w.extend(Boottime(), o.Deadline, o.Notice)
	case o.Verb == signalVerb:
		if f.main != 0 && !f.reaped {
			_ = syscall.Kill(f.main, o.Signal)
		}
	case o.Verb == killVerb:
		return Killed
	default:
		// What can't be understood might have been a stop.
		return ParentGone
	}
	return 0
}

// look tells the command to end if that is due, and returns why it is over, or 0.
func (f *family) look(w *watch) Reason {
	v := w.at(Boottime())
	// Asked once: it may change between two cases.
	ended := f.main != 0 && f.exited()
	switch {
	case ended && !w.stopping:
		return Exited
	case v == kill, ended && !f.groupAlive():
		return w.reason
	case v == terminate && f.main != 0 && !f.told:
		f.told = true
		f.terminate()
	}
	return 0
}

// reserveThreads makes the runtime create, now, the threads that it may want
// later. A command that exhausts the process limit must not take the guard down
// with it: the runtime gives up when it can't create a thread.
func reserveThreads() {
	runtime.GOMAXPROCS(2)
	const enough = 10
	var ready, done sync.WaitGroup
	ready.Add(enough)
	for range enough {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			ready.Wait()
		})
	}
	done.Wait()
}

// notifyEnd returns a channel of the signals that ask this process to end,
// without those that it inherited as ignored (nohup): to catch one would make
// the command, too, die of it.
func notifyEnd() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c
}

// receive reads orders, or reports, until the pipe ends or breaks, then closes the channel.
func receive[T order | report](d *gob.Decoder) <-chan T {
	c := make(chan T)
	go func() {
		defer close(c)
		for {
			var x T
			if d.Decode(&x) != nil {
				return
			}
			c <- x
		}
	}()
	return c
}

// family is the command and its descendants, as seen from the guard.
type family struct {
	// spawning reports the outcome of the command's start, and is nil once that is known. Until
	// then the command may appear at any time, so its absence proves nothing.
	spawning <-chan spawnResult
	// main is the command, which leads its process group; 0 until it runs. As
	// long as it isn't reaped its number can't mean another group.
	main   int
	reaped bool
	told   bool // to end
	status syscall.WaitStatus
	cgroup cgroup
}

// terminate asks the process group to end. A stopped one must run to hear it.
func (f *family) terminate() {
	_ = syscall.Kill(-f.main, syscall.SIGTERM)
	_ = syscall.Kill(-f.main, syscall.SIGCONT)
}

// finish kills all that is left of the command, reports and returns the exit
// code of the guard.
func (f *family) finish(why Reason, reports *gob.Encoder) int {
	from := Boottime()
	left := f.killAll()
	s := Status{Code: -1, Signal: syscall.SIGKILL, Reason: why}
	if f.reaped {
		s.Code, s.Signal = f.status.ExitStatus(), 0
		if f.status.Signaled() {
			s.Code, s.Signal = -1, f.status.Signal()
		}
	}
	_ = reports.Encode(report{Ended: true, Status: s, From: from, Gone: Boottime(), Survivors: left})
	return s.ExitCode()
}
