package sqlite

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkAppend(b *testing.B) {
	l := open(b, Options{Path: filepath.Join(b.TempDir(), "ledger.db")})
	for seq := int64(1); b.Loop(); seq++ {
		if err := l.Append(b.Context(), storetest.Grant("job", seq)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAttend is for how long appends wait for a roster at most.
func BenchmarkAttend(b *testing.B) {
	for _, size := range []int{1, 20, 600} {
		b.Run(fmt.Sprintf("of %d presences", size), func(b *testing.B) {
			l := open(b, Options{Path: filepath.Join(b.TempDir(), "ledger.db")})
			var all []store.Presence
			for i := range size {
				all = append(all, storetest.Presence("job", fmt.Sprint(i)))
			}
			for b.Loop() {
				if err := l.Attend(b.Context(), all); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLook is the share of an append that looks at the files. It is done twice.
func BenchmarkLook(b *testing.B) {
	l := open(b, Options{Path: filepath.Join(b.TempDir(), "ledger.db")})
	if err := l.Init(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := l.file.check(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTail(b *testing.B) {
	for _, size := range []int64{1_000, 100_000} {
		b.Run(fmt.Sprintf("of %d records", size), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "ledger.db")
			l := open(b, Options{Path: path})
			if err := l.Init(b.Context()); err != nil {
				b.Fatal(err)
			}
			tx, err := raw(b, path).BeginTx(b.Context(), nil)
			if err != nil {
				b.Fatal(err)
			}
			for seq := range size {
				if _, err := tx.ExecContext(b.Context(), insertRecord, slices.Concat(rowOf(b, storetest.Grant("job", seq+1)), below(nil), l.guards(l.file.schema.Load()))...); err != nil {
					b.Fatal(err)
				}
			}
			if err := tx.Commit(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if got, _, err := l.Tail(b.Context(), "job", 1); err != nil || got[0].Seq != size {
					b.Fatalf("Tail() = %v, %v", got, err)
				}
			}
		})
	}
}

func BenchmarkTailByLimit(b *testing.B) {
	storetest.BenchmarkTail(b, open(b, Options{Path: filepath.Join(b.TempDir(), "ledger.db")}), nil)
}

// BenchmarkFigures measures what docs/stores/figures.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	path := filepath.Join(b.TempDir(), "ledger.db")
	documenttest.BenchmarkFigures(b, func() store.Ledger {
		l := open(b, Options{Path: path})
		documenttest.Must(b, "Init()", l.Init(b.Context()))
		return l
	})
}
