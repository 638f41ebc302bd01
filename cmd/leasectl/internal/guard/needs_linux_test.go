package guard

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// enterSandbox becomes the program args[2:], which gets the error args[1] for the system call args[0].
func enterSandbox(args []string) error {
	call, err := strconv.ParseUint(args[0], 10, 32)
	errno, err2 := strconv.ParseUint(args[1], 10, 16)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(call), Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // It is this thread's.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return err
	}
	return syscall.Exec(args[2], args[2:], os.Environ())
}

// killsChild reports whether this process can be a guard, and kill a child as one.
func killsChild() error {
	if err := BecomeSubreaper(); err != nil {
		return err
	}
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		return err
	}
	defer func() { _ = child.Process.Kill() }()
	return killIf(process{pid: child.Process.Pid}, func(process) bool { return true })
}

// Without any of these a command would hang, be killed, or seem to have failed: so nothing is leased.
func TestAProcessThatCannotGuardSaysSo(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	denying := func(call int, errno syscall.Errno) []string {
		return []string{self, helperArg, "sandbox", strconv.Itoa(call), strconv.Itoa(int(errno))}
	}
	for _, c := range []struct {
		under []string
		want  string // of the error; empty: none, and a child is killed
	}{
		{nil, ""},
		{denying(unix.SYS_WAIT4, unix.EPERM), "the system call wait4 is denied (operation not permitted)"},
		{denying(unix.SYS_WAIT4, unix.ENOSYS), "the system call wait4 is denied (function not implemented)"},
		{denying(unix.SYS_WAITID, unix.EPERM), "waitid is denied"},
		{denying(unix.SYS_KILL, unix.EACCES), "kill is denied"},
		{denying(unix.SYS_TIMERFD_CREATE, unix.EPERM), "timerfd_create or timerfd_settime is denied"},
		{denying(unix.SYS_TIMERFD_SETTIME, unix.EPERM), "timerfd_create or timerfd_settime is denied"},
		{denying(unix.SYS_PRCTL, unix.EPERM), "prctl is denied"},
		{denying(unix.SYS_PIDFD_OPEN, unix.EPERM), ""},
		{denying(unix.SYS_PIDFD_SEND_SIGNAL, unix.EPERM), ""},
		{[]string{"unshare", "--pid", "--fork", "--kill-child"}, "and this process is 1: mount a /proc of the own PID namespace"},
		{[]string{"unshare", "--pid", "--fork", "--kill-child", "sh", "-c", `: as another than process 1; "$@"`, "sh"}, "mount a /proc of the own PID namespace"},
		{[]string{"unshare", "--mount", "sh", "-c", `umount -l /proc; exec "$@"`, "sh"}, "/proc must be mounted"},
	} {
		t.Run(strings.TrimPrefix(fmt.Sprint(c.under), "["+self), func(t *testing.T) {
			t.Parallel()
			argv := append(append([]string{}, c.under...), self, helperArg, "child")
			if argv[0] == "unshare" {
				if out, err := exec.Command("unshare", argv[1], "--fork", "true").CombinedOutput(); err != nil {
					unavailable(t, string(out)+err.Error())
				}
			}
			out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
			if (err == nil) != (c.want == "") || !strings.Contains(string(out), c.want) {
				t.Errorf("under %q: %q, %v, want %q", c.under, out, err, c.want)
			}
		})
	}
}
