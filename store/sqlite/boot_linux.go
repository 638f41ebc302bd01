package sqlite

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// kernel returns the kernel's boot clock. The id is the same in all containers
// of a machine; the clock isn't in a time namespace, whose shift is taken out.
func kernel() (machine, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return machine{}, fmt.Errorf("read the machine's boot id: %w", err)
	}
	shift, err := timeNamespace("/proc/self")
	if err != nil {
		return machine{}, fmt.Errorf("read the time namespace: %w", err)
	}
	name := strings.TrimSpace(string(id))
	if name == "" {
		return machine{}, errors.New("read the machine's boot id: /proc/sys/kernel/random/boot_id is empty")
	}
	return machine{id: name, real: true, own: true, shift: shift, since: func() (time.Duration, error) {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
			return 0, err
		}
		return time.Duration(t.Nano()) - shift, nil
	}}, nil
}

// timeNamespace reads how far the boot clock of this process is ahead of the machine's, given its
// directory in /proc. Kernels before 5.6 have no time namespaces.
func timeNamespace(self string) (time.Duration, error) {
	offsets, err := os.ReadFile(filepath.Join(self, "timens_offsets"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(self); err != nil {
			return 0, fmt.Errorf("%w: mount a /proc of the own PID namespace", err)
		}
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	// The file shows the namespace of children. After unshare(2) without a fork that isn't the
	// process's own, unless the kernel switches to it at the next exec.
	own, ownErr := os.Readlink(filepath.Join(self, "ns/time"))
	children, childrenErr := os.Readlink(filepath.Join(self, "ns/time_for_children"))
	switch err := errors.Join(ownErr, childrenErr); {
	case err != nil:
		return 0, err
	case own != children:
		return 0, fmt.Errorf("it is %s, and that of children is %s: start this program as a child (unshare --fork)", own, children)
	}
	return namespaceShift(offsets)
}

// namespaceShift reads how far the boot clock of a time namespace is ahead of
// the machine's, from the lines of time_namespaces(7): clock, s, ns.
func namespaceShift(offsets []byte) (time.Duration, error) {
	for lines := bufio.NewScanner(bytes.NewReader(offsets)); lines.Scan(); {
		var name string
		var s, ns int64
		if _, err := fmt.Sscan(lines.Text(), &name, &s, &ns); err != nil {
			return 0, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		if name == "boottime" || name == "7" {
			return time.Duration(s)*time.Second + time.Duration(ns), nil
		}
	}
	return 0, nil
}
