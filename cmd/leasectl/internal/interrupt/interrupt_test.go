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
		wishes int
	}{
		"one signal":                           {wishes: 1},
		"two at once":                          {[]time.Duration{0}, 1},
		"a volley within a second":             {[]time.Duration{0, 500 * time.Millisecond, 500 * time.Millisecond}, 1},
		"two that are a second apart":          {[]time.Duration{time.Second}, 1},
		"two that are more apart":              {[]time.Duration{1001 * time.Millisecond}, 2},
		"two at once, and another later":       {[]time.Duration{0, 1001 * time.Millisecond}, 2},
		"two that are more apart, and a third": {[]time.Duration{1001 * time.Millisecond, 0, 1001 * time.Millisecond}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caught, ended, done := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
				var wishes []os.Signal
				go func() {
					defer close(done)
					heed(caught, ended, func(s os.Signal) bool { return s == syscall.SIGHUP }, func(n int, s os.Signal) bool {
						wishes = append(wishes, s)
						return n < 3
					})
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
				<-done
				if len(wishes) != c.wishes || wishes[0] != syscall.SIGTERM {
					t.Errorf("wishes by %v, want %d, the first by %v", wishes, c.wishes, syscall.SIGTERM)
				}
			})
		})
	}
}
