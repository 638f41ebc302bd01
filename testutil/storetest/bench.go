package storetest

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// BenchmarkTail measures what it costs to read the newest record, the newest two, as a worker
// does to see whether the head contradicts the one below it, and the newest 16, in a ledger of
// 200 records. wire, if it is not nil, counts the bytes that go to the store and come back.
func BenchmarkTail(b *testing.B, l store.Ledger, wire *atomic.Int64) {
	b.Helper()
	if err := l.Init(b.Context()); err != nil {
		b.Fatal(err)
	}
	for seq := range int64(200) {
		if err := l.Append(b.Context(), Grant("bench", seq+1)); err != nil {
			b.Fatal(err)
		}
	}
	for _, limit := range []int{1, 2, 16} {
		b.Run(fmt.Sprint("limit ", limit), func(b *testing.B) {
			var before int64
			if wire != nil {
				before = wire.Load()
			}
			for b.Loop() {
				if got, _, err := l.Tail(b.Context(), "bench", limit); err != nil || len(got) != limit {
					b.Fatalf("Tail() = %d records, %v; want %d", len(got), err, limit)
				}
			}
			if wire != nil {
				b.ReportMetric(float64(wire.Load()-before)/float64(b.N), "wire-B/op")
			}
		})
	}
}

// Wire listens on the loopback interface, passes connections on to a store at an address, and
// counts the bytes of both directions. It ends with the benchmark.
func Wire(b *testing.B, store string) (addr string, bytes *atomic.Int64) {
	b.Helper()
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	bytes = new(atomic.Int64)
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", store)
			if err != nil {
				_ = near.Close()
				continue
			}
			go pass(near, far, bytes)
			go pass(far, near, bytes)
		}
	}()
	return l.Addr().String(), bytes
}

// pass passes on what comes, until either side closes.
func pass(to, from net.Conn, n *atomic.Int64) {
	defer func() { _ = to.Close() }()
	_, _ = io.Copy(to, io.TeeReader(from, counter{n}))
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
