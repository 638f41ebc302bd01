package fault

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
)

// A check has its share of the time that an examination has: one that hangs leaves some to the others.
func TestACheckHasItsShareOfTheTime(t *testing.T) {
	for _, c := range []struct{ all, first, part time.Duration }{
		{0, 10 * time.Second, 3 * time.Second}, // no deadline
		{2 * time.Second, 1800 * time.Millisecond, time.Second},
		{10 * time.Second, 9 * time.Second, 3 * time.Second},
		{time.Minute, 10 * time.Second, 12 * time.Second},
		{time.Hour, 10 * time.Second, 12 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := Exam{Clock: clock.New()}
			took := func(begin func(context.Context) (context.Context, context.CancelFunc)) time.Duration {
				ctx := t.Context()
				if c.all > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.all)
					defer cancel()
				}
				began := time.Now()
				ctx, cancel := begin(ctx)
				defer cancel()
				<-ctx.Done()
				if err := context.Cause(ctx); err != context.DeadlineExceeded {
					t.Errorf("the check ended by %v", err)
				}
				return time.Since(began)
			}
			if first, part := took(e.First), took(e.Part); first != c.first || part != c.part {
				t.Errorf("of %v, the check of the connection had %v, want %v; another one %v, want %v", c.all, first, c.first, part, c.part)
			}
		})
	}
}
