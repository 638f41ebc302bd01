package suites_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
)

// limited is a test that go test ends after 100 s, if it has a limit. It ends by panicking with what Fatalf says.
type limited struct {
	skipped
	end time.Time
}

func (l limited) Deadline() (time.Time, bool)       { return l.end, !l.end.IsZero() }
func (l limited) Fatalf(format string, args ...any) { l.Skipf(format, args...) }

func TestWhatHangsEndsBeforeTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx := suites.Deadline(limited{skipped{t}, began.Add(100 * time.Second)})
		<-ctx.Done()
		if took, cause := time.Since(began), context.Cause(ctx); took != 100*time.Second/3 || !strings.Contains(cause.Error(), t.Name()+" hangs") {
			t.Errorf("Deadline() ends after %v with %v, want that the test hangs after a third of 100s", took, cause)
		}
		if suites.Deadline(limited{skipped: skipped{t}}) != t.Context() {
			t.Error("Deadline() of a test without one isn't its context")
		}
		said := reason(t, func(testing.TB) {
			suites.Eventually(limited{skipped{t}, time.Now().Add(100 * time.Second)}, "the moon is blue", func() bool { return false })
		})
		if took := time.Since(began); !strings.Contains(said, "the moon is blue: "+t.Name()+" hangs") || took.Round(time.Second) != 67*time.Second {
			t.Errorf("Eventually() says %q after %v, want what didn't come after 67s", said, took)
		}
		suites.Eventually(limited{skipped: skipped{t}}, "time goes on", func() bool { return time.Since(began) > 68*time.Second })
	})
}
