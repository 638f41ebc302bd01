package mongo

import (
	"context"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// shut makes a member refuse to say hello, until back is called.
func shut(f *fakeServer) (back func()) {
	f.mu.Lock()
	was := f.greeting
	f.mu.Unlock()
	f.greet(append(slices.Clone(was), bson.E{Key: "ok", Value: 0.0}))
	return func() { f.greet(was) }
}

func TestAMemberOutOfReachStaysWhereItWasThroughAJump(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by  time.Duration
		all bool
	}{
		"the primary's clock is set by 20 ms": {by: 20 * time.Millisecond},
		"the machine is paused for 1 s":       {by: time.Second, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ahead = 3 * time.Second
			s, mock := serveClocks(t, 0, 0, ahead)
			l := s.open(Options{})
			wantSkew(t, l, ahead, ahead+slack)
			shut(s.members[2])
			mock.Add(time.Minute)
			skewOf(t, l)
			wantSkew(t, l, ahead+defaultSkew, ahead+defaultSkew+10*slack)
			for i := range s.off {
				if i == 0 || c.all {
					s.off[i].Add(int64(c.by))
				}
			}
			for _, wait := range []time.Duration{time.Second, time.Minute} {
				mock.Add(wait)
				wantSkew(t, l, ahead, ahead+defaultSkew+10*slack)
			}
		})
	}
}

func TestAMemberThatFailedAndIsBackIsWaitedFor(t *testing.T) {
	t.Parallel()
	s, mock := serveClocks(t, 0, 0, 3*time.Second)
	back := shut(s.members[2])
	l := s.open(Options{})
	wantSkew(t, l, defaultSkew, defaultSkew+slack)
	back()
	mock.Add(time.Minute)
	wantSkew(t, l, 3*time.Second, 3*time.Second+slack)
}

// A stamp that comes long after the failure waits for a moment, since the member may be back.
func TestAMemberThatIsGoneDelaysAStampByAMoment(t *testing.T) {
	t.Parallel()
	c := &shifted{Clock: clock.New()}
	s := serveClocksIn(t, c, 0, 0)
	s.elect(0, append(s.addresses(), silent(t))...)
	l := s.open(Options{})
	wantSkew(t, l, defaultSkew, defaultSkew+busy)
	c.by.Store(int64(time.Minute))
	began := time.Now()
	skewOf(t, l)
	if took := time.Since(began); took < mostGrace || took >= askWithin {
		t.Errorf("a stamp a minute after a member failed took %v, want %v and less than %v", took, mostGrace, askWithin)
	}
}

// shifted is the real clock, which jumps ahead now and then.
type shifted struct {
	clock.Clock
	by atomic.Int64
}

func (s *shifted) Since(t time.Time) time.Duration {
	return s.Clock.Since(t) + time.Duration(s.by.Load())
}

// A firewall has forgotten an idle connection, and drops everything sent over it.
func TestAMemberIsAskedAnewWhereItsConnectionIsDead(t *testing.T) {
	t.Parallel()
	c := &shifted{Clock: clock.New()}
	s := serveClocksIn(t, c, 0, 0)
	behind := &firewall{to: s.members[1].addr}
	s.members[1].addr = behind.listen(t)
	s.elect(0, s.addresses()...)
	l := s.open(Options{ServerSkew: time.Minute}) // more than a busy machine adds to what is measured
	skewOf(t, l)
	behind.forget.Store(behind.known.Load())
	c.by.Store(int64(10 * time.Minute))
	began := time.Now()
	if got := skewOf(t, l); got >= time.Minute {
		t.Errorf("Now() has skew %v, want that of a member that answers over a new connection", got)
	}
	if took := time.Since(began); took < pooledShare || took >= askWithin {
		t.Errorf("Now() took %v, want %v for the dead connection and less than %v in all", took, pooledShare, askWithin)
	}
}

// firewall forwards connections to a server. It forgets the first of them, as many as forget says.
type firewall struct {
	to            string
	known, forget atomic.Int64
}

func (w *firewall) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", w.to)
			if err != nil {
				_ = client.Close()
				return
			}
			go w.pass(w.known.Add(1), server, client)
			go w.pass(w.known.Load(), client, server)
		}
	}()
	return l.Addr().String()
}

func (w *firewall) pass(n int64, to, from net.Conn) {
	defer to.Close()
	_, _ = io.Copy(forgetful{to, func() bool { return n <= w.forget.Load() }}, from)
}

// forgetful is a writer that drops its input while forgets returns true.
type forgetful struct {
	io.Writer
	forgets func() bool
}

func (f forgetful) Write(b []byte) (int, error) {
	if f.forgets() {
		return len(b), nil
	}
	return f.Writer.Write(b)
}

// Two stamps are made at once. The hello of one was sent before a member joined, and is handled last.
func TestAnOlderHelloRemovesNoMember(t *testing.T) {
	t.Parallel()
	s, mock := serveClocks(t, 0, 3*time.Second)
	dialled, dial := make(chan struct{}), make(chan struct{})
	m := newMembers(s.clock, defaultSkew, func(ctx context.Context, host string) (net.Conn, error) {
		close(dialled)
		<-dial
		return (&net.Dialer{}).DialContext(ctx, "tcp", host)
	})
	t.Cleanup(m.end)
	hello := func(hosts []string) greeting {
		return greeting{me: hosts[0], set: "rs0", hosts: hosts, time: s.clock.Now(), named: true, member: true, writable: true}
	}
	older := m.local()
	mock.Add(2 * time.Millisecond)
	newer, before := m.local(), hello(s.addresses()[:1])
	got := make(chan time.Duration, 1)
	go func() {
		apart, _, err := m.apart(t.Context(), hello(s.addresses()), newer, newer)
		if err != nil {
			t.Errorf("apart() = %v", err)
		}
		got <- apart
	}()
	<-dialled
	second := make(chan error, 1)
	go func() {
		_, _, err := m.apart(t.Context(), before, older, newer)
		second <- err
	}()
	time.Sleep(10 * time.Millisecond)
	close(dial)
	if apart := <-got; apart < 3*time.Second {
		t.Errorf("the skew by the newer hello is %v, want 3s", apart)
	}
	must(t, "apart() by the older hello", <-second)
	m.mu.Lock()
	m.keep(before, newer, newer)
	left := len(m.hosts)
	m.mu.Unlock()
	if left != 0 {
		t.Errorf("a hello that isn't older leaves %d members, want the primary alone", left)
	}
}
