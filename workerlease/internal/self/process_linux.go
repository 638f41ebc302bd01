package self

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Process says which process a PID is that of this one, beyond its number: replicas in containers may all be process 1 of one host
// name. It is the boot, the namespaces of PIDs and of times, and when the process began; empty if that can't be read.
var Process = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, e := os.Readlink("/proc/self/ns/pid")
	times, _ := os.Readlink("/proc/self/ns/time") // Since Linux 5.6: it shifts when processes seem to have begun.
	pid, _ := os.Readlink("/proc/self")
	began := beganAt("self")
	if err != nil || e != nil || began == "" || pid != strconv.Itoa(os.Getpid()) { // That /proc may be of another namespace.
		return ""
	}
	return fmt.Sprintf("%.8s.%s.%s.%s", boot, strings.Trim(space, "pid:[]"), strings.Trim(times, "time:[]"), began)
})

// beganAt is when a process began, in ticks since the boot; empty if that can't be read.
func beganAt(pid string) string {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	name := strings.LastIndexByte(string(stat), ')') // It may have spaces, and brackets.
	fields := strings.Fields(string(stat[name+1:]))
	if err != nil || len(fields) < 20 {
		return ""
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "over" // It has ended, and nobody has noticed that yet.
	}
	return fields[19]
}

// IsGone reports that a process which said so of itself is surely not there any more: this one can tell by the PID.
func IsGone(pid int, process string) bool {
	end := strings.LastIndexByte(process, '.')
	if end < 0 || !strings.HasPrefix(Process(), process[:end+1]) {
		return false // It is of another namespace or machine.
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	began := beganAt(strconv.Itoa(pid))
	return began != "" && began != process[end+1:]
}
