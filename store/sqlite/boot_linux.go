package sqlite

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	offsets, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return machine{}, fmt.Errorf("read the time namespace: %w", err)
	}
	shift, err := namespaceShift(offsets)
	if err != nil {
		return machine{}, fmt.Errorf("read the time namespace: %w", err)
	}
	name := strings.TrimSpace(string(id))
	if name == "" {
		return machine{}, errors.New("read the machine's boot id: /proc/sys/kernel/random/boot_id is empty")
	}
	return machine{id: name, real: true, since: func() (time.Duration, error) {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
			return 0, err
		}
		return time.Duration(t.Nano()) - shift, nil
	}}, nil
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
