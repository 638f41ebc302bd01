//go:build sqlserver

package sqlserver

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// silent is the address of a host that takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func TestAHostThatIsSilentIsGivenUp(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: "sqlserver://me:" + canary + "@" + silent(t) + "/d?connectTimeout=100ms"})
	_, err := l.Now(within(t))
	documenttest.Says(t, "Now() of a silent host", err, nil, "no connection in 100ms (connectTimeout)")
	err = l.Append(within(t), storetest.Grant("job", 1))
	if !errors.Is(err, store.ErrNotStored) {
		t.Errorf("Append() to a silent host = %v, want that nothing was stored", err)
	}
	many := opened(t, Options{URI: "sqlserver://me@" + silent(t) + "," + silent(t) + "/d?connectTimeout=50ms"})
	_, err = many.Now(within(t))
	documenttest.Says(t, "Now() of two silent hosts", err, nil, "; ")
}

func TestAnOperationEndsWithItsContextWhateverTheHostDoes(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: "sqlserver://me@" + silent(t) + "/d?connectTimeout=1m"})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _, err := l.Tail(ctx, "job", 1)
	documenttest.Is(t, "Tail() of a silent host", err, context.DeadlineExceeded)
	must(t, "Close()", l.Close(within(t)))
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("Tail() and Close() took %v", took)
	}
	_, err = l.Now(within(t))
	documenttest.Is(t, "Now() after Close()", err, store.ErrClosed)
}

// It isn't parallel, because it counts goroutines.
func TestAHandleThatIsClosedLeavesNoGoroutine(t *testing.T) {
	o := Options{URI: "sqlserver://me@" + silent(t) + "/d?connectTimeout=1m"}
	documenttest.LeavesNoGoroutine(t, func() (store.Ledger, error) { return Open(t.Context(), o) })
}

func TestAnExaminationOfAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for parameters, level := range map[string]store.Level{
		"": store.LevelOK, "&encrypt=strict": store.LevelOK, "&trustServerCertificate=true": store.LevelWarn, "&encrypt=false": store.LevelOK,
	} {
		l := opened(t, Options{URI: "sqlserver://me:" + canary + "@" + silent(t) + "/d?connectTimeout=50ms" + parameters})
		found, err := l.Examine(within(t))
		must(t, "Examine()", err)
		levels := map[string]store.Level{}
		for _, f := range found {
			levels[f.Check] = f.Level
		}
		for check, want := range map[string]store.Level{store.CheckConnection: store.LevelFail, store.CheckTLS: level, CheckServer: store.LevelSkip, CheckTable: store.LevelSkip} {
			if levels[check] != want {
				t.Errorf("Examine() of %q: %s is %v, want %v", parameters, check, levels[check], want)
			}
		}
	}
	l := opened(t, Options{URI: "sqlserver://me@db.example/d?encrypt=false"})
	if text, remedy := l.secured(); remedy == "" {
		t.Errorf("secured() of another machine without encryption = %q, want a warning", text)
	}
	documenttest.Is(t, "Examine() after Close()", func() error { must(t, "Close()", l.Close(within(t))); _, err := l.Examine(within(t)); return err }(), store.ErrClosed)
}

func TestASoundServerIsSaidToBeUntested(t *testing.T) {
	t.Parallel()
	_, err := unproven(sound())
	documenttest.Says(t, "what is said of a sound server", err, nil, "this store is untested", "go test -tags sqlserver")
}
