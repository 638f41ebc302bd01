//go:build unix

package interrupt

import (
	"os"
	"os/signal"
	"syscall"
)

// Passed are the signals that mean nothing to leasectl, and are for the command that it runs: SIGUSR1
// and SIGUSR2, unless they were ignored. Until stop is called, they don't end the process.
func Passed() (signals <-chan os.Signal, stop func()) {
	caught := make(chan os.Signal, 8)
	for _, s := range []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	return caught, func() { signal.Stop(caught) }
}
