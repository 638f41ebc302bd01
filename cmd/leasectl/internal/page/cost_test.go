package page

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/store/memory"
)

// BenchmarkLookAtManyTypes is a look of the overview whose records are known, as there is one each second while somebody looks,
// however many do.
func BenchmarkLookAtManyTypes(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := memory.New(memory.Options{})
			for i := range n {
				for seq := range int64(50) {
					r := grant(seq+1, fmt.Sprintf("type-%d", i), int(49-seq), "anna")
					m.Put(r)
				}
			}
			p := New(Options{Scrub: func(s string) string { return s }, Timeout: time.Minute})
			p.cache = inspect.NewCache(m, fresh, eachType)
			last, err := p.look(context.Background(), subject{view: "overview"})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				now, err := p.look(context.Background(), subject{view: "overview"})
				if err != nil {
					b.Fatal(err)
				}
				_ = now.since(last, p.event)
				last = now
			}
		})
	}
}
