// Package guard runs a command so that no descendant of it outlives a deadline.
//
// [Start] re-executes the program's own binary as a guard, a second process
// between the program and the command, and the guard runs the command. [Main],
// called first thing in main, is where the guard process starts:
//
//	program ── pipes ── guard ── command ── its children …
//
// The guard kills the command and all its descendants with SIGKILL
//   - at the deadline, whatever the program does (it may be stopped);
//   - as soon as the program is gone, however it died: the kernel closes its
//     end of the orders pipe;
//   - when the program asks for it ([Process.Kill]), or sends an order that the
//     guard can't read;
//   - when the command itself ends. The end of the command ends the job: the
//     processes that it left, in the background or detached, are killed too.
//
// The command's process group gets SIGTERM first when there is time: Grace
// before the deadline, or when the program asks ([Process.Stop]) or the guard
// itself is sent SIGTERM, SIGINT, SIGQUIT or SIGHUP. SIGKILL follows when the
// grace is over or the deadline has come, whichever is first. A shell often
// dies of SIGTERM at once while the programs that it runs still tidy up, so
// within the grace the other members of the process group may finish even
// though the command has ended.
//
// # The deadline
//
// It is absolute, on CLOCK_BOOTTIME ([Boottime]), which goes on while the
// machine is suspended and isn't stepped with the wall clock. The timer is of
// the same clock: a machine that wakes up late kills at once. Killing starts at
// the deadline; a process has run its last instruction a few milliseconds later
// (more for a command with thousands of processes), so a caller that needs
// silence at an instant passes an earlier one. A deadline moves closer with
// Stop, and later only with [Process.Extend], which names it as an instant: an
// order that is delivered late, or twice, or after a newer one, can't lengthen
// anything. Once SIGTERM is sent nothing extends the deadline. A deadline that is
// to be moved has a Notice shorter than the Grace, so that SIGTERM isn't sent while the
// program still tries to move it.
//
// # Finding everything
//
// A process group misses what called setsid, and Pdeathsig misses grandchildren. On Linux the guard is a
// child subreaper: orphans anywhere below it become its children instead of init's, so every descendant stays
// reachable from it, and "the guard has no children" (ECHILD) proves that none is left, once the start of the
// command is over. It kills the group in one atomic step, then walks the tree and kills until that proof; a
// debugger outside may keep the dead from being reaped, and hidepid=2 may hide the living: see family.killAll and
// offspring. Processes aren't frozen first: fork fails in a process with a SIGKILL pending.
//
// Where the guard may make a cgroup (version 2, with cgroup.kill: Linux 5.14), as root or by Delegate=yes, the
// command runs in one and is killed in one step, also what /proc hides and what runs as another user. The tree is
// walked all the same. [Process.Means] shows which means is in use.
//
// When the guard dies, Pdeathsig kills the command; the rest falls to the program if it called
// [BecomeSubreaper]. When the guard is stopped, the program continues it at the deadline and does its work if
// that doesn't help. Either way the program reports the end only with proof: it is the subreaper and finds no
// orphan among its children, or the cgroup is empty, or /proc hides nothing. Otherwise the error is
// [ErrSurvivors]: 2 s after the killing began, if one of them has been there for as long and nothing else is left,
// or after 10 s whatever they start anew meanwhile; as much later if the program had to do the work of its guard.
//
// # What isn't guaranteed
//
//   - The guard and the program both killed, or both stopped, at one instant
//     (the out-of-memory killer taking a whole cgroup, a frozen machine): the
//     command dies with the guard, its other descendants may stay. Only a
//     fencing token, checked where the work is written, helps then.
//   - Without BecomeSubreaper, descendants that left the session survive a
//     SIGKILL of the guard. With it, a program that starts children in sessions
//     of their own by other means must not be surprised when these are killed
//     as the dead guard's.
//   - A set-user-ID program (sudo, su) can't be killed by an ordinary user without
//     a cgroup, nor does Pdeathsig work on it. See [ErrSurvivors].
//   - When guard and program are killed at one instant, the empty directory
//     leasectl-PID-… of the cgroup may stay.
//   - A process in an uninterruptible system call runs no more of its program
//     once SIGKILL is sent, but goes away, and lets Wait return, only when that
//     call is over.
//   - A debugger that is attached to the guard itself and does nothing keeps Wait from
//     returning, as long as it stays. The command is killed all the same.
//   - If the command ends while such a debugger is attached to it, that is noticed at the
//     deadline, and its exit code is lost: Status is that of SIGKILL.
//   - Work handed to another service, or machine, isn't a descendant: docker run, ssh,
//     kubectl exec, systemd-run without --scope, at.
//   - A chain of processes that each start a new session, fork and exit within
//     microseconds races the walk of the tree. It is caught in the end, not at
//     a bounded time.
//
// Other Unix systems have neither subreapers nor Pdeathsig: there the guard
// kills the process group only, so that a descendant which leaves the group
// survives, as does the command when the guard is killed while the program is
// stopped or gone; and the clock may stand still during a suspend. Elsewhere
// (Windows, AIX) Start returns [ErrUnsupported].
//
// # The terminal
//
// The guard and the command live in a session of their own, without a
// controlling terminal. Ctrl-C and Ctrl-Z signal the program alone, which
// decides what to do, and a stop of it leaves the command running until the
// deadline at most. The command may write to the terminal but must not compete
// for its input, so a terminal as Stdin is replaced by the null device.
package guard
