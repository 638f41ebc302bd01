package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestSentinelsNameThePrimary(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t)
	sentinel := redispeer.StartSentinel(t, "leases", primary)
	dead := "127.0.0.1:1" // nobody listens there
	l := open(t, fmt.Sprintf("redis+sentinel://%s,%s/leases/0", dead, sentinel.Addr()))
	must(t, "Append()", appendTo(t, l, 1))
	s, err := l.Now(t.Context())
	if err != nil || s.Server != primary.Addr() || s.Skew != DefaultSkew {
		t.Errorf("Now() = %+v, %v, want a stamp of %s", s, err, primary.Addr())
	}
	await(t, "that the sentinel knows the replica", func() bool {
		return strings.Contains(do(t, raw(t, sentinel.URI()), "INFO", "sentinel"), "slaves=1")
	})
	// A replica that is online may still have nothing of what came last: a failover loses that.
	await(t, "the record at the replica", func() bool {
		n, err := raw(t, replica.URI()).ZCard(t.Context(), l.names.ledger("job")).Result()
		return n == 1 && err == nil
	})
	// One handle waits for the replica, and goes to the former primary whatever happens.
	straight := open(t, primary.URI()+"?replicas=1&replicaWait=100ms")
	var acknowledged []int64
	var writing sync.WaitGroup
	stop, first := make(chan struct{}), make(chan struct{})
	writing.Go(func() {
		for seq := int64(1); ; seq++ {
			select {
			case <-stop:
				return
			default:
			}
			if straight.Append(t.Context(), storetest.Grant("straight", seq)) == nil {
				if acknowledged = append(acknowledged, seq); len(acknowledged) == 1 {
					close(first)
				}
			}
		}
	})
	// On a busy machine the replica may take longer than 100 ms for each of the first.
	await(t, "an append that both servers have acknowledged", func() bool {
		select {
		case <-first:
			return true
		default:
			return false
		}
	})
	// It asks the replica only now and then whether it is any good.
	await(t, "that the sentinel finds the replica good", func() bool {
		return raw(t, sentinel.URI()).Do(t.Context(), "SENTINEL", "FAILOVER", "leases").Err() == nil
	})
	await(t, "that the sentinel names the new primary", func() bool {
		addr, err := raw(t, sentinel.URI()).Do(t.Context(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "leases").StringSlice()
		return err == nil && net.JoinHostPort(addr[0], addr[1]) == replica.Addr()
	})
	// The former primary doesn't know of it yet, and goes on.
	if role := do(t, raw(t, primary.URI()), "INFO", "replication"); !strings.Contains(role, "role:master") {
		t.Log("the former primary knows already that it is none")
	}
	time.Sleep(askAgain)
	if s, err := l.Now(t.Context()); err != nil || s.Server != replica.Addr() {
		t.Errorf("Now() = %+v, %v, want a stamp of the new primary %s", s, err, replica.Addr())
	}
	if _, err := l.Get(t.Context(), "job", 1); err != nil {
		t.Errorf("Get() by the new primary = %v, want the record", err)
	}
	must(t, "Append() by the new primary", appendTo(t, l, 2))
	time.Sleep(500 * time.Millisecond)
	close(stop)
	writing.Wait()
	for _, seq := range acknowledged {
		if _, err := l.Get(t.Context(), "straight", seq); err != nil {
			t.Errorf("Get(straight, %d) by the new primary = %v, want what both had acknowledged", seq, err)
			break
		}
	}
	wantFinding(t, examined(t, l), store.CheckConnection, store.LevelOK, "sentinels")
	unknown := open(t, fmt.Sprintf("redis+sentinel://%s/other", sentinel.Addr()))
	wantRefusal(t, "Append() to an unknown service", appendTo(t, unknown, 1), nil, "no primary by the name other")
}

// A machine that is gone answers nothing at all.
func TestASilentSentinelIsPassedOver(t *testing.T) {
	t.Parallel()
	primary, silent := redispeer.Start(t, redispeer.Options{}), redispeer.Start(t, redispeer.Options{})
	sentinel := redispeer.StartSentinel(t, "leases", primary)
	silent.Pause()
	l := open(t, fmt.Sprintf("redis+sentinel://%s,%s/leases", silent.Addr(), sentinel.Addr()))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := l.Now(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Now() by a silent sentinel = %v, want the context's error", err)
	}
	await(t, "the end of the first question", func() bool { return l.turn.Load() == 1 })
	must(t, "Append()", appendTo(t, l, 1))
}

func TestSentinelsMayWantAPassword(t *testing.T) {
	t.Parallel()
	primary := redispeer.Start(t, redispeer.Options{})
	sentinel := redispeer.StartSentinel(t, "leases", primary, "requirepass s3cret-sentinel")
	uri := fmt.Sprintf("redis+sentinel://%s/leases", sentinel.Addr())
	must(t, "Append()", appendTo(t, openWith(t, Options{URI: uri, SentinelPassword: "s3cret-sentinel"}), 1))
	getenv := func(name string) string { return map[string]string{"REDIS_SENTINEL_PASSWORD": "s3cret-sentinel"}[name] }
	l, err := store.Open(t.Context(), uri, store.OpenOptions{Getenv: getenv, AppName: "an app"})
	must(t, "store.Open()", err)
	must(t, "Append()", appendTo(t, l, 2))
	must(t, "Close()", l.Close(t.Context()))
	wantRefusal(t, "Append() without the password", appendTo(t, open(t, uri), 3), store.ErrDenied, "NOAUTH")
	wrong := openWith(t, Options{URI: uri, SentinelPassword: "s3cret-other"})
	err = appendTo(t, wrong, 3)
	wantRefusal(t, "Append() with a wrong password", err, store.ErrDenied, "WRONGPASS")
	if strings.Contains(err.Error()+store.Detail(err), "s3cret") {
		t.Errorf("Append() with a wrong password = %v, which shows it", err)
	}
}
