// Package procs follows the processes that tests start.
package procs

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
)

// Eventually is that of package suites.
var Eventually = suites.Eventually

// Carrying are the living processes that have a variable in their environment, such as
// "MARK=1". Descendants inherit it, wherever they go.
func Carrying(variable string) (pids []int) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range environs {
		b, err := os.ReadFile(name)
		pid, numErr := strconv.Atoi(strings.Split(name, "/")[2])
		if err == nil && numErr == nil && bytes.Contains(b, []byte(variable)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Gone waits until there are no processes, and returns when one was last seen, and when
// none was first. A busy machine may put much between the two.
func Gone(t *testing.T, processes func() []int) (alive, dead time.Time) {
	t.Helper()
	looks := 0
	Eventually(t, "all descendants are gone", func() bool {
		before := time.Now()
		if len(processes()) > 0 {
			looks, alive = 0, before
			return false
		}
		if looks++; looks == 1 {
			dead = time.Now()
		}
		// A process has no environment for an instant while it executes a program.
		return looks == 5
	})
	return alive, dead
}

// Lines are the lines of a file that are complete. A missing file has none.
func Lines(path string) (lines []string) {
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		if whole, ok := strings.CutSuffix(line, "\n"); ok {
			lines = append(lines, whole)
		}
	}
	return lines
}
