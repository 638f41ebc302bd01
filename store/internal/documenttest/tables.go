package documenttest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// NewTable is the name of a table that no other test has.
func NewTable() string { return "t" + strings.ToLower(rand.Text()) }

var tableName = regexp.MustCompile(`\bT(_\w+)?\b`)

// Named is a text about the table T, and others whose names begin with T_, about a table of another name.
func Named(table, text string) string { return tableName.ReplaceAllString(text, table+"$1") }

// Unfit is a table T that was changed: the check that finds that, and what is said. Without a check it is fit all the same.
type Unfit struct {
	Plant       []string
	Check, Says string
}

// UnfitIsRefused demands that tables are refused which are unfit, and the fault found. execute executes a statement past the ledger.
func UnfitIsRefused(t *testing.T, all map[string]Unfit, open func(t testing.TB, table string) store.Ledger, execute func(t testing.TB, text string)) {
	t.Helper()
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := NewTable()
			Must(t, "Init()", open(t, table).Init(Within(t, patience)))
			for _, text := range c.Plant {
				execute(t, Named(table, text))
			}
			l := open(t, table)
			err := l.Append(Within(t, patience), storetest.Grant("job", 1))
			found, examined := store.Describe(l).Examine(Within(t, patience))
			Must(t, "Examine()", examined)
			again := open(t, table).Init(Within(t, patience))
			if c.Check == "" {
				Must(t, "Append()", err)
				Must(t, "Init()", again)
				FindsNoMore(t, found, "durability")
				return
			}
			says := Named(table, c.Says)
			Means(t, "Append()", err, store.ErrRefused, true, says)
			Says(t, "Init(), which doesn't make it fit", again, store.ErrRefused, says)
			Finds(t, found, c.Check, store.LevelFail, strings.NewReplacer(": drop them", " → drop them", ": use", " → use").Replace(says))
		})
	}
}

// InitialiseAtOnce demands that handles which create the same tables at once all succeed.
func InitialiseAtOnce(t *testing.T, open func() store.Ledger) {
	t.Helper()
	const handles = 8
	done := make(chan error)
	for range handles {
		l, ctx := open(), Within(t, patience)
		go func() { done <- l.Init(ctx) }()
	}
	for range handles {
		if err := <-done; err != nil {
			t.Errorf("Init() beside others = %v, want nil", err)
		}
	}
}

// Right is what a user with some rights is told.
type Right struct {
	// Rights are what is granted, and Denied says that appends are denied.
	Rights []string
	Denied bool
	// Check is the one that finds what is missing, on this level; Also are others that do.
	Check string
	Level store.Level
	Says  string
	Also  []string
}

// RightsAreFound demands that what is said of users' rights is what the server does. open opens a ledger of a user with rights.
func RightsAreFound(t *testing.T, all map[string]Right, open func(t testing.TB, rights []string) store.Ledger) {
	t.Helper()
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t, c.Rights)
			d := store.Describe(l)
			if err := d.CheckRights(Within(t, patience)); (err != nil) != c.Denied || c.Denied && !errors.Is(err, store.ErrDenied) {
				t.Errorf("CheckRights() = %v, want denied %v", err, c.Denied)
			} else if errors.Is(err, store.ErrFinal) != c.Denied {
				t.Errorf("CheckRights() = %v, want that no waiting helps against a right that is missing", err)
			}
			err := l.Append(Within(t, patience), storetest.Grant("job"+NewTable(), 1))
			if (err != nil) != c.Denied || c.Denied && (!errors.Is(err, store.ErrDenied) || !errors.Is(err, store.ErrNotStored)) {
				t.Errorf("Append() = %v, want denied %v", err, c.Denied)
			}
			found, err := d.Examine(Within(t, patience))
			Must(t, "Examine()", err)
			Finds(t, found, c.Check, c.Level, c.Says)
			FindsNoMore(t, found, append(c.Also, c.Check, "durability")...)
		})
	}
}

// IsSound demands that nothing is found wrong with a ledger, by so many checks, and closes it.
func IsSound(t *testing.T, l store.Ledger, checks int) {
	t.Helper()
	d := store.Describe(l)
	found, err := d.Examine(Within(t, patience))
	Must(t, "Examine()", err)
	FindsNoMore(t, found)
	if len(found) != checks {
		t.Errorf("Examine() found\n%swant %d findings", Lines(found), checks)
	}
	if w := d.Warning(); w != "" {
		t.Errorf("Warning() = %q, want none", w)
	}
	Must(t, "Close()", l.Close(Within(t, patience)))
	if found, err := d.Examine(Within(t, patience)); !errors.Is(err, store.ErrClosed) || found != nil {
		t.Errorf("Examine() after Close = %v, %v, want ErrClosed", found, err)
	}
}

// IsExhausted demands that operations name an application's pool that has no connection left, and what bounds it. take takes its last one.
func IsExhausted(t *testing.T, l store.Ledger, take func() (giveBack func()), says string) {
	t.Helper()
	giveBack := take()
	err := l.Append(Within(t, patience), storetest.Grant("job", 1))
	Says(t, "Append() on an exhausted pool", err, store.ErrNotStored, "the application's pool has no free connection: "+says)
	err = l.Append(Within(t, time.Second), storetest.Grant("job", 1))
	Says(t, "Append() with little time", err, store.ErrNotStored, says)
	Is(t, "Append() with little time", err, context.DeadlineExceeded)
	_, err = l.Now(Within(t, 2*time.Second))
	Says(t, "Now() with little time", err, context.DeadlineExceeded, says)
	giveBack()
	Must(t, "Append()", l.Append(Within(t, patience), storetest.Grant("job", 1)))
}

// EndsWithItsPool demands that an append says that the application has closed the pool of a ledger, or its client.
func EndsWithItsPool(t *testing.T, l store.Ledger, closePool func()) {
	t.Helper()
	Must(t, "Append()", l.Append(Within(t, patience), storetest.Grant("job", 1)))
	closePool()
	Says(t, "Append() after the application has closed its pool", l.Append(Within(t, patience), storetest.Grant("job", 2)), store.ErrClosed, "the application has closed")
}

// LendsFew demands that appends of many worker types use no more connections of an application's pool at once.
func LendsFew(t *testing.T, l store.Ledger, most int, inUse func() int) {
	t.Helper()
	var seen atomic.Int64
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for seq := range int64(5) {
				if err := l.Append(Within(t, patience), storetest.Grant(fmt.Sprint("job", i), seq+1)); err != nil {
					t.Errorf("Append() = %v, want nil", err)
				}
				n := int64(inUse())
				for was := seen.Load(); n > was && !seen.CompareAndSwap(was, n); was = seen.Load() {
				}
			}
		})
	}
	wg.Wait()
	if n := seen.Load(); n > int64(most) {
		t.Errorf("%d connections were lent at once, want at most %d", n, most)
	}
}
