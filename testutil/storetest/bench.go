package storetest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
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

// longVariable names the environment variable that sets how many records BenchmarkLong reads.
const longVariable = "SLOTLEASE_LONG"

// BenchmarkLong measures what leasectl does with a ledger of many records, SLOTLEASE_LONG of them or 2,000: it lists the
// worker types, reads the newest 1, 16 and 200 records, and reads the first page and a later one.
func BenchmarkLong(b *testing.B, l store.Ledger) {
	b.Helper()
	count := int64(2000)
	if n, err := strconv.ParseInt(os.Getenv(longVariable), 10, 64); err == nil {
		count = max(n, store.MaxPage)
	}
	if err := l.Init(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := appendMany(b.Context(), l, "bench", 1, count, 32); err != nil {
		b.Fatal(err)
	}
	b.Run("types", func(b *testing.B) {
		for b.Loop() {
			if got, err := l.WorkerTypes(b.Context()); err != nil || len(got) != 1 {
				b.Fatalf("WorkerTypes() = %q, %v; want one", got, err)
			}
		}
	})
	for _, limit := range []int{1, 16, 200} {
		b.Run(fmt.Sprint("tail of ", limit), func(b *testing.B) {
			for b.Loop() {
				if got, _, err := l.Tail(b.Context(), "bench", limit); err != nil || len(got) != limit {
					b.Fatalf("Tail() = %d records, %v; want %d", len(got), err, limit)
				}
			}
		})
	}
	p, ok := store.As[store.Pager](l)
	if !ok {
		return
	}
	for name, after := range map[string]int64{"first page": 0, "later page": count - store.MaxPage} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got, err := p.Page(b.Context(), "bench", after, store.MaxPage); err != nil || len(got) != store.MaxPage {
					b.Fatalf("Page() = %d records, %v; want %d", len(got), err, store.MaxPage)
				}
			}
		})
	}
}

// appendMany appends the grants first … last of a worker type, some at a time.
func appendMany(ctx context.Context, l store.Ledger, workerType string, first, last int64, atATime int) error {
	next, failed := new(atomic.Int64), make(chan error, atATime)
	next.Store(first - 1)
	var wg sync.WaitGroup
	for range atATime {
		wg.Go(func() {
			for seq := next.Add(1); seq <= last; seq = next.Add(1) {
				if err := l.Append(ctx, Grant(workerType, seq)); err != nil {
					failed <- fmt.Errorf("Append(%s, %d) = %w, want nil", workerType, seq, err)
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
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
