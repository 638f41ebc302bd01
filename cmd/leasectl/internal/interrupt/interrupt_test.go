package interrupt

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestOnlySignalsThatAreMoreThanASecondApartAreTwo(t *testing.T) {
	for name, c := range map[string]struct {
		after  []time.Duration // of further signals, each after the one before
		urgent bool
	}{
		"one signal":                     {},
		"two at once":                    {after: []time.Duration{0}},
		"a volley within a second":       {after: []time.Duration{0, 500 * time.Millisecond, 500 * time.Millisecond}},
		"two that are a second apart":    {after: []time.Duration{time.Second}},
		"two that are more apart":        {after: []time.Duration{1001 * time.Millisecond}, urgent: true},
		"two at once, and another later": {after: []time.Duration{0, 1001 * time.Millisecond}, urgent: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caught, ended, done := make(chan os.Signal, 2), make(chan struct{}), make(chan bool, 1)
				var first []os.Signal
				go func() {
					done <- heed(caught, ended, func(s os.Signal) bool { return s == syscall.SIGHUP }, func(s os.Signal) { first = append(first, s) })
				}()
				caught <- syscall.SIGHUP // is passed on, and none of them
				caught <- syscall.SIGTERM
				synctest.Wait()
				for _, d := range c.after {
					time.Sleep(d)
					caught <- syscall.SIGINT
					synctest.Wait()
				}
				close(ended)
				if urgent := <-done; urgent != c.urgent {
					t.Errorf("urgent = %v, want %v", urgent, c.urgent)
				}
				if len(first) != 1 || first[0] != syscall.SIGTERM {
					t.Errorf("the context ended at %v, want at the first signal alone", first)
				}
			})
		})
	}
}
