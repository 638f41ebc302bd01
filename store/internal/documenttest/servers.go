package documenttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// patience bounds an operation that must succeed, on a machine that is busy.
const patience = time.Minute

// Means demands that an append's error is a sentinel, or none if that is nil, that surely nothing was stored or not, and that it
// says something.
func Means(t *testing.T, what string, err, is error, notStored bool, says string) {
	t.Helper()
	Sentinel(t, what, err, is)
	if got := errors.Is(err, store.ErrNotStored); got != notStored || !strings.Contains(fmt.Sprint(err), says) {
		t.Errorf("%s = %v, nothing stored: %v, want %v, and %q in it", what, err, got, notStored, says)
	}
}

// HasAnotherClock demands that a server's stamps name one clock, with one microsecond and no skew, and another one after a restart.
func HasAnotherClock(t *testing.T, l store.Ledger, restart func()) {
	t.Helper()
	clocks := map[string]bool{}
	for range 2 {
		stamp, err := l.Now(Within(t, patience))
		Must(t, "Now()", err)
		ctx, receipt := store.WithReceipt(Within(t, patience))
		Must(t, "Append()", l.Append(ctx, storetest.Grant("job", int64(len(clocks)+1))))
		_, tailed, err := l.Tail(Within(t, patience), "job", 1)
		Must(t, "Tail()", err)
		for what, s := range map[string]store.Stamp{"Append": receipt.Stamp(), "Tail": tailed} {
			if s.Clock != stamp.Clock || s.Server != stamp.Server || s.Skew != 0 || s.Granularity != time.Microsecond || s.Time.Before(stamp.Time) {
				t.Errorf("%s gives %+v, and Now before it %+v, want one clock without a skew", what, s, stamp)
			}
		}
		clocks[stamp.Clock] = true
		restart()
	}
	if len(clocks) != 2 {
		t.Errorf("clocks before and after a restart: %v, want two", clocks)
	}
}

// AsksForPasswords demands that a ledger asks for the password of now for each connection, and shows none. change gives the user
// another one, and kill ends its connections.
func AsksForPasswords(
	t *testing.T, open func(ask func(ctx context.Context) (string, error)) store.Ledger, change func(to string), kill func(),
) {
	t.Helper()
	var password atomic.Pointer[string]
	set := func(to string) { password.Store(&to) }
	const first = "first-" + Canary
	change(first)
	set(first)
	l := open(func(context.Context) (string, error) { return *password.Load(), nil })
	Must(t, "Init()", l.Init(Within(t, patience)))
	for seq := int64(1); seq < 6; seq++ {
		next := fmt.Sprintf("next-%d-%s", seq, Canary)
		change(next)
		set(next)
		kill()
		for {
			err := l.Append(Within(t, patience), storetest.Grant("job", seq))
			if err == nil || errors.Is(err, store.ErrConflict) {
				break
			}
			if errors.Is(err, store.ErrDenied) || strings.Contains(err.Error(), Canary) {
				t.Fatalf("Append() after the password was changed = %v, want it asked for", err)
			}
		}
	}
	set("stale-" + Canary)
	kill()
	var err error
	for !errors.Is(err, store.ErrDenied) {
		_, err = l.Now(Within(t, patience))
	}
	if strings.Contains(fmt.Sprint(err, store.Detail(err)), Canary) {
		t.Errorf("Now() with a stale password = %v, want no secret", err)
	}
	_, err = open(func(context.Context) (string, error) { return "", errors.New("the vault is sealed") }).Now(Within(t, patience))
	Says(t, "Now()", err, store.ErrNotStored, "PasswordFunc: the vault is sealed")
}

// Mistakes demands that errors about statements that a server can't parse, or that name what isn't there, mean a refusal
// that says so, with the number: nobody is to look for a server that is there.
func Mistakes(t *testing.T, numbers map[string]string, meaning func(number, text string) (shown, remedy string, is error)) {
	t.Helper()
	for text, number := range numbers {
		shown, remedy, is := meaning(number, text)
		if !errors.Is(is, store.ErrRefused) || !strings.Contains(shown, "error "+number+", ") || !strings.Contains(remedy, "a mistake of slotlease") {
			t.Errorf("%s means %v, %q, and to do is %q, want a mistake with the number %s", text, is, shown, remedy, number)
		}
	}
}
