//go:build unix

package interrupt

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
)

// A closed terminal sends SIGHUP: without it, the lease would be kept until its end.
func TestEachSignalToEndIsCaught(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			also := make(chan os.Signal, 1) // Nothing ends this process if it isn't caught.
			signal.Notify(also, s)
			defer signal.Stop(also)
			ctx, signals := Catch(suites.Deadline(t))
			defer signals.Stop()
			if err := syscall.Kill(os.Getpid(), s); err != nil {
				t.Fatal(err)
			}
			<-also
			select { // It is given to all that are notified in one go, but taken by another goroutine.
			case <-ctx.Done():
			case <-suites.Deadline(t).Done():
			}
			if cause := context.Cause(ctx); !errors.Is(cause, Err) || cause.Error() != s.String() {
				t.Errorf("the cause is %v, want %v", cause, s)
			}
		})
	}
}
