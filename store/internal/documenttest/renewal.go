package documenttest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// Renewable copies files, so that Renew can replace them.
func Renewable(t testing.TB, of ...string) (at []string) {
	t.Helper()
	dir := t.TempDir()
	for i, path := range of {
		at = append(at, filepath.Join(dir, fmt.Sprint(i)+".pem"))
		Renew(t, at[i], path)
	}
	return at
}

// Renew replaces a file by the content of another at once, as those who renew certificates do.
func Renew(t testing.TB, at, by string) {
	t.Helper()
	text, err := os.ReadFile(by)
	Must(t, "ReadFile()", err)
	Must(t, "WriteFile()", os.WriteFile(at+".new", text, 0o600))
	Must(t, "Rename()", os.Rename(at+".new", at))
}

// GoesOn has a ledger append, calls renew, which ends its connections, and has the ledger append again: it may fail for a while.
func GoesOn(t *testing.T, l store.Ledger, renew func()) {
	t.Helper()
	Must(t, "Append() before", l.Append(Within(t, time.Minute), storetest.Grant(fmt.Sprintf("before%d", time.Now().UnixNano()), 1)))
	renew()
	Comes(t, "Append() after", func(ctx context.Context, n int) error {
		return l.Append(ctx, storetest.Grant(fmt.Sprintf("after%d-%d", n, time.Now().UnixNano()), 1))
	})
}

// Comes has do tried until it succeeds, while the test has time.
func Comes(t *testing.T, what string, do func(ctx context.Context, n int) error) {
	t.Helper()
	var err error
	defer func() {
		if err != nil {
			t.Logf("%s = %v, want nil in the end", what, err)
		}
	}()
	n := -1
	suites.Eventually(t, what, func() bool {
		n++
		err = do(Within(t, 5*time.Second), n)
		return err == nil
	})
}

// ComesToSay has do tried until its error says all parts.
func ComesToSay(t *testing.T, what string, do func(ctx context.Context, n int) error, parts ...string) {
	t.Helper()
	Comes(t, what, func(ctx context.Context, n int) error {
		got := fmt.Sprint(do(ctx, n))
		for _, part := range parts {
			if !strings.Contains(got, part) {
				return fmt.Errorf("an error %s without %q", got, part)
			}
		}
		return nil
	})
}
