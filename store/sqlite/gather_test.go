package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// commitsIn counts the transactions in the log of a file that was not written back yet. The last
// frame of each says how large the file is then.
func commitsIn(path string) (n int) {
	b, err := os.ReadFile(path + "-wal")
	if err != nil {
		return 0
	}
	const header, frame = 32, 24
	page := int(binary.BigEndian.Uint32(b[8:]))
	salt := string(b[16:24])
	for b = b[header:]; len(b) >= frame+page && string(b[8:16]) == salt; b = b[frame+page:] {
		if binary.BigEndian.Uint32(b[4:]) != 0 {
			n++
		}
	}
	return n
}

// outcome is that of an append of a group.
type outcome struct {
	of  int
	err error
}

// gathering has appends wait, all at once, for a lock that another program holds. Those of a second record name the first.
func gathering(t *testing.T, l *Ledger, records []store.Record, of func(i int) context.Context) <-chan outcome {
	t.Helper()
	all := make(chan outcome, len(records))
	for i, r := range records {
		go func() {
			if r.Seq > 1 {
				all <- outcome{i, l.AppendAfter(of(i), r, storetest.Grant(r.WorkerType, r.Seq-1))}
				return
			}
			all <- outcome{i, l.Append(of(i), r)}
		}()
	}
	suites.Eventually(t, fmt.Sprintf("%d appends wait", len(records)), func() bool {
		l.appends.mu.Lock()
		defer l.appends.mu.Unlock()
		return len(l.appends.waiting) == len(records)
	})
	return all
}

// outcomes are those of so many appends, in their order.
func outcomes(t *testing.T, from <-chan outcome, n int) []error {
	t.Helper()
	errs := make([]error, n)
	for range n {
		o := <-from
		errs[o.of] = o.err
	}
	return errs
}

// ofTypes returns grants, each for another worker type.
func ofTypes(n int) (records []store.Record) {
	for i := range n {
		records = append(records, storetest.Grant(fmt.Sprint("job", i), 1))
	}
	return records
}

// inUse is a ledger in use whose log has nothing that wasn't written back, and by how much its log grows.
func inUse(t *testing.T, o Options) (l *Ledger, commits func() int) {
	t.Helper()
	o.Path = filepath.Join(t.TempDir(), "ledger.db")
	l = open(t, o)
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("first", 1)))
	now(t, l)
	before := commitsIn(o.Path)
	return l, func() int { return commitsIn(o.Path) - before }
}

func always(t *testing.T) func(int) context.Context {
	t.Helper()
	return func(int) context.Context { return t.Context() }
}
