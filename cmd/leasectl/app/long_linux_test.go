package app

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// longVariable is the number of records of the ledgers on which the commands must answer soon. make long asks for 100,000.
const longVariable = "SLOTLEASE_LONG"

// A ledger that workers have kept for long, and have trimmed at its beginning.
func TestTheCommandsAnswerSoonOnALongLedgerOfEachRegisteredStore(t *testing.T) {
	if testing.Short() {
		t.Skip("appends hundreds of records to each store")
	}
	const soon = 2 * time.Second
	count, timed := int64(600), false
	if n, err := strconv.ParseInt(os.Getenv(longVariable), 10, 64); err == nil {
		count, timed = n, true
	} else {
		t.Parallel() // What a command takes beside other tests says little.
	}
	for name, fresh := range registered { // One after the other, so that none is measured beside another.
		t.Run(name, func(t *testing.T) {
			count := count
			if name == "Azure Blob Storage" {
				count = min(count, 5000) // Azurite takes longer for each read the more there are, which the service doesn't.
			}
			uri, env := fresh(t)
			plant(t, uri, env, count)
			env = append(env, storeuri.Variable+"="+uri)
			for _, c := range []struct {
				args, says string
				streams    bool
			}{
				{"status", "export", false},
				{"why --worker-type export", "export", false},
				{"next --worker-type export", "IN", false},
				{"inspect slots --worker-type export", "released", false},
				{"inspect workers --worker-type export", "export", false},
				{"doctor", "ledger-length", false},                              // It counts for a while only, and says so.
				{"verify --timeout 2m", fmt.Sprintf("%d records", count), true}, // beside other tests
			} {
				began := time.Now()
				got := leasectl(t, env, strings.Fields(c.args)...)
				took := time.Since(began)
				t.Logf("leasectl %-40s %5d ms", c.args, took.Milliseconds())
				if got.code != exit.OK || !strings.Contains(got.stdout, c.says) {
					t.Errorf("leasectl %s = %+v, want %q", c.args, got, c.says)
				}
				if took > soon && !c.streams && timed {
					t.Errorf("leasectl %s took %v on a ledger of %d records, want %v at most", c.args, took, count, soon)
				}
			}
		})
	}
}

// plant makes a ledger of so many records, without the oldest 1,000: two for each slot of 30 s, up to the present one.
func plant(t *testing.T, uri string, env []string, count int64) {
	t.Helper()
	l, err := store.Open(t.Context(), uri, store.OpenOptions{Getenv: lookup(env)})
	must(t, err)
	defer func() { _ = l.Close(t.Context()) }()
	must(t, l.Init(t.Context()))
	const every, trimmed, atATime = 30 * time.Second, 1000, 32
	last := storeTime(t, l).Truncate(every)
	began := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range atATime {
		wg.Go(func() {
			for n := next.Add(1); n <= count; n = next.Add(1) {
				if err := l.Append(t.Context(), planted(last.Add(-time.Duration((count-n)/2)*every), every, trimmed+n, n%2 != count%2)); err != nil {
					t.Errorf("Append(%d) = %v, want nil", n, err)
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d records were appended in %v", count, time.Since(began).Round(time.Millisecond))
}

// planted is a record about the slot that starts at a time: the grant of it, or the release at its end.
func planted(start time.Time, every time.Duration, seq int64, grant bool) store.Record {
	r := recordtest.Grant(seq, 0, "worker-a")
	r.Claim, r.Token, r.Schedule = fmt.Sprint("claim-", start.UnixMilli()), start.UnixMilli(), "every "+every.String()
	r.SlotStart, r.SlotEnd, r.WindowStart, r.WindowEnd = start, start.Add(every), start, start.Add(every)
	r.FixedAt, r.ReadAt = start.Add(-400*time.Millisecond), start.Add(-300*time.Millisecond)
	if !grant {
		r = recordtest.Release(r, seq, start.Add(time.Second))
	}
	return r
}
