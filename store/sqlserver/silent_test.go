//go:build sqlserver

package sqlserver

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
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
	host := silent(t)
	use := func() {
		l, err := Open(t.Context(), Options{URI: "sqlserver://me@" + host + "/d?connectTimeout=1m"})
		must(t, "Open()", err)
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, _, _ = l.Tail(ctx, "job", 1)
			cancel()
		}
		must(t, "Close()", l.Close(within(t)))
	}
	use()
	before := runtime.NumGoroutine()
	for range 10 {
		use()
	}
	for range 500 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines after Close, %d before", runtime.NumGoroutine(), before)
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
		for check, want := range map[string]store.Level{store.CheckConnection: store.LevelFail, store.CheckTLS: level, CheckServer: store.LevelWarn, CheckTable: store.LevelSkip} {
			if levels[check] != want {
				t.Errorf("Examine() of %q: %s is %v, want %v", parameters, check, levels[check], want)
			}
		}
	}
	l := opened(t, Options{URI: "sqlserver://me@db.example/d?encrypt=false"})
	e := &storekit.Exam{Clock: l.clock}
	l.examineTLS(e)
	if e.Found[0].Level != store.LevelWarn {
		t.Errorf("examineTLS() of another machine without encryption = %+v, want a warning", e.Found)
	}
	documenttest.Is(t, "Examine() after Close()", func() error { must(t, "Close()", l.Close(within(t))); _, err := l.Examine(within(t)); return err }(), store.ErrClosed)
}

func TestFactsAreJudgedOneByOne(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: "sqlserver://me@db.example/d"})
	judged := func(f *facts) []store.Finding {
		e := &storekit.Exam{Clock: l.clock}
		l.examineFacts(e, f)
		return e.Found
	}
	untested := judged(sound())[0]
	if untested.Check != CheckServer || untested.Level != store.LevelWarn || !strings.Contains(untested.Text, "this store is untested") || !strings.Contains(untested.Remedy, "go test -tags sqlserver") {
		t.Errorf("examineFacts() of a sound server = %+v, want a warning that the store is untested", untested)
	}
	for check, spoil := range map[string]func(f *facts){
		CheckServer: with(valueDelayed, "FORCED"), CheckDurability: with(valuePageVerify, "NONE"), CheckTable: func(f *facts) { f.ledger.kinds = "external" },
		store.CheckConstraints: func(f *facts) { f.ledger.policies = []string{"p"} },
	} {
		f := sound()
		spoil(f)
		for _, found := range judged(f) {
			if found == untested {
				continue
			}
			if bad := found.Level != store.LevelOK; bad != (found.Check == check) || bad && found.Remedy == "" {
				t.Errorf("examineFacts() of a spoilt %s = %+v", check, found)
			}
		}
	}
}
