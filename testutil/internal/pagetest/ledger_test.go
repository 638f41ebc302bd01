package pagetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/leasectltest"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
)

// backends are the stores on which each view is shown, with a ledger of the test's own.
var backends = []struct {
	name string
	uri  func(t *testing.T) string
}{
	{"SQLite", func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "leases.db") }},
	{"PostgreSQL", func(t *testing.T) string { return postgrespeer.Database(t) }},
	{"MongoDB", func(t *testing.T) string { return mongoDatabase(t, mongopeer.URI(t)) }}, // which reads all of a collection for each answer
}

// mongoDatabase is the URI of a database of the test's own at a server.
func mongoDatabase(t *testing.T, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	must(t, err)
	u.Path = fmt.Sprintf("/page_%d", time.Now().UnixNano())
	return u.String()
}

// seeded is a ledger of SQLite with the history.
func seeded(t *testing.T) (uri string) {
	t.Helper()
	uri = backends[0].uri(t)
	fill(t, uri, past(t))
	return uri
}

// newest is the end of a history: so many records of each type.
func (h history) newest(n int) history {
	count := map[string]int{}
	for _, r := range h.records {
		count[r.WorkerType]++
	}
	var records []store.Record
	for _, r := range h.records {
		if count[r.WorkerType]--; count[r.WorkerType] < n {
			records = append(records, r)
		}
	}
	return history{records, h.presences}
}

// fill writes a history into a ledger, which is created.
func fill(t *testing.T, uri string, h history) {
	t.Helper()
	l, err := store.Open(t.Context(), uri, store.OpenOptions{})
	must(t, err)
	defer l.Close(context.WithoutCancel(t.Context()))
	must(t, l.Init(t.Context()))
	// Several at once: a server's answers take time.
	records := make(chan store.Record)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var faults []error
	for range 4 {
		wg.Go(func() {
			for r := range records {
				if err := l.Append(t.Context(), r); err != nil {
					mu.Lock()
					faults = append(faults, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, r := range h.records {
		records <- r
	}
	close(records)
	wg.Wait()
	// Workers are there for some minutes from now on, but for the one that died.
	presences := slices.Clone(h.presences)
	for i := range presences {
		if p := &presences[i]; p.Host != "vm-4" {
			p.Next = p.Next.Add(time.Since(p.Seen))
			p.Seen = time.Now()
		}
	}
	roster, ok := store.As[store.Roster](l)
	if !ok {
		t.Fatalf("%s keeps no roster", uri)
	}
	must(t, errors.Join(errors.Join(faults...), roster.Attend(t.Context(), presences)))
}

// environment names a store to leasectl.
func environment(uri string) []string { return []string{"LEASECTL_STORE=" + uri} }

// cli runs leasectl on a store, and wants it to succeed.
func cli(t *testing.T, uri string, args ...string) string {
	t.Helper()
	got := leasectltest.Leasectl(t, environment(uri), args...)
	if got.Code != 0 {
		t.Fatalf("leasectl %q = %+v", args, got)
	}
	return got.Stdout
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
