// Package signals lets tests that were started to ignore signals heed them.
package signals

import (
	"os"
	"os/signal"
	"syscall"
)

// Heed heeds signals that the tests were started to ignore, as nohup and scripts do: every
// process that the tests start, and signal, would inherit that. TestMain calls it before it
// runs the tests.
func Heed() {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
