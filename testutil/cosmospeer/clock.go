package cosmospeer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// shifted is the environment in which a program's time of day is off, but its
// timers, which use the monotonic clock, aren't.
func shifted(offset time.Duration) ([]string, error) {
	offset = offset.Round(time.Millisecond)
	if offset == 0 {
		return nil, nil
	}
	library, err := preloaded()
	if err != nil {
		return nil, fmt.Errorf("a peer with a wrong clock needs faketime: %w", err)
	}
	return []string{
		"LD_PRELOAD=" + library,
		fmt.Sprintf("FAKETIME=%+.3fs", offset.Seconds()),
		"FAKETIME_DONT_FAKE_MONOTONIC=1",
		"NO_FAKE_STAT=1",
	}, nil
}

// preloaded is the path of the library that the program faketime preloads. The peer
// isn't run by that program, because it would then be its child, and signals wouldn't
// reach it.
//
// The program names shared memory after its process id, and fails if a former process
// with that id left some, so it is tried more than once.
func preloaded() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var last error
	for range 5 {
		out, err := exec.CommandContext(ctx, "faketime", "-m", "-f", "+0", "printenv", "LD_PRELOAD").Output()
		if err == nil {
			return strings.TrimSpace(string(out)), nil
		}
		last = err
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			last = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(e.Stderr)))
		}
	}
	return "", last
}

// sharedNames are how the names of the files begin that the library makes for each
// process, and removes when the process exits, but not when it is killed. The
// process id follows.
var sharedNames = []string{"/dev/shm/faketime_shm_", "/dev/shm/sem.faketime_sem_"}

// removeShared removes what a process that was killed left behind.
func removeShared(pid int, _ string) {
	for _, name := range sharedNames {
		_ = os.Remove(name + strconv.Itoa(pid))
	}
}
