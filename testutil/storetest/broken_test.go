package storetest_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// broken is a memory ledger with some of its methods replaced.
type broken struct {
	*memory.Ledger
	append func(ctx context.Context, r store.Record) error
	after  func(ctx context.Context, r, prev store.Record) error
	get    func(ctx context.Context, workerType string, seq int64) (store.Record, error)
	tail   func(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error)
	page   func(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error)
	trim   func(ctx context.Context, workerType string, before int64) (int, error)
	types  func(ctx context.Context) ([]string, error)
	now    func(ctx context.Context) (store.Stamp, error)
	close  func(ctx context.Context) error
	// reading handles are denied to append and to trim, unless that is what is broken. Those
	// elsewhere reach the data by another path.
	reading, elsewhere bool
	watch              func(ctx context.Context, changed func(string)) error
	attend             func(ctx context.Context, all []store.Presence) error
	leave              func(ctx context.Context, workerType string, ids []string) error
	durability         func() store.Durability
	rights             func(ctx context.Context) error // nil: all are there
	presences          func(ctx context.Context, workerType string) ([]store.Presence, error)
	// unfit are planted presences that can't be read, as far as they could be. All handles share them.
	unfit *unfit
}

// intact is a ledger of which nothing is broken yet.
func intact(h *memory.Ledger, unfit *unfit) *broken {
	return &broken{
		Ledger: h, append: h.Append, after: h.AppendAfter, get: h.Get, tail: h.Tail, page: h.Page, trim: h.Trim, types: h.WorkerTypes, now: h.Now, close: h.Close,
		watch: h.Watch, attend: h.Attend, leave: h.Leave, presences: h.Presences, durability: h.Durability, unfit: unfit,
	}
}

func (b *broken) Describe() store.Description {
	return store.Description{Durability: func() store.Durability { return b.durability() }, CheckRights: b.checkRights}
}

func (b *broken) checkRights(ctx context.Context) error {
	if b.rights == nil {
		return nil
	}
	return b.rights(ctx)
}

func (b *broken) Attend(ctx context.Context, all []store.Presence) error { return b.attend(ctx, all) }

func (b *broken) Leave(ctx context.Context, workerType string, ids []string) error {
	return b.leave(ctx, workerType, ids)
}

func (b *broken) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	return b.presences(ctx, workerType)
}

func (b *broken) Watch(ctx context.Context, changed func(string)) error { return b.watch(ctx, changed) }

func (b *broken) Append(ctx context.Context, r store.Record) error { return b.append(ctx, r) }
func (b *broken) AppendAfter(ctx context.Context, r, prev store.Record) error {
	return b.after(ctx, r, prev)
}

func (b *broken) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	return b.get(ctx, workerType, seq)
}

func (b *broken) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	return b.tail(ctx, workerType, limit)
}

func (b *broken) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	return b.page(ctx, workerType, after, limit)
}

func (b *broken) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	return b.trim(ctx, workerType, before)
}
func (b *broken) WorkerTypes(ctx context.Context) ([]string, error) { return b.types(ctx) }
func (b *broken) Now(ctx context.Context) (store.Stamp, error)      { return b.now(ctx) }
func (b *broken) Close(ctx context.Context) error                   { return b.close(ctx) }

// defect breaks a ledger in one way, and names a case that must notice.
type defect struct {
	name string
	in   func(b *broken)
	seen string
}

// edited is a ledger that changes the records which it reads.
func edited(name, seen string, f func(r *store.Record)) defect {
	return defect{name, func(b *broken) {
		b.get = func(ctx context.Context, workerType string, seq int64) (store.Record, error) {
			r, err := b.Ledger.Get(ctx, workerType, seq)
			f(&r)
			return r, err
		}
		b.tail = func(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
			records, s, err := b.Ledger.Tail(ctx, workerType, limit)
			for i := range records {
				f(&records[i])
			}
			return records, s, err
		}
	}, seen}
}

// grouped is a ledger that stores appends of one moment together, and spoils their outcomes.
func grouped(spoil func(errs []error)) func(b *broken) {
	return func(b *broken) {
		type entry struct {
			ctx  context.Context
			r    store.Record
			done chan error
		}
		var mu sync.Mutex
		var waiting []entry
		b.append = func(ctx context.Context, r store.Record) error {
			if r.Check() != nil || ctx.Err() != nil {
				return b.Ledger.Append(ctx, r)
			}
			e := entry{ctx, r, make(chan error, 1)}
			mu.Lock()
			waiting = append(waiting, e)
			first := len(waiting) == 1
			mu.Unlock()
			if first {
				time.Sleep(5 * time.Millisecond)
				mu.Lock()
				group := waiting
				waiting = nil
				mu.Unlock()
				errs := make([]error, len(group))
				for i, e := range group {
					errs[i] = b.Ledger.Append(e.ctx, e.r)
				}
				spoil(errs)
				for i, e := range group {
					e.done <- errs[i]
				}
			}
			return <-e.done
		}
	}
}

const breakEnv = "STORETEST_BREAK"

func allDefects() []defect {
	return slices.Concat(insideDefects, followDefects, pageDefects, outsideDefects, readerDefects, pathDefects, watchDefects, rosterDefects, attendanceDefects, harnessDefects())
}

func TestTheSuiteNoticesEveryDefect(t *testing.T) {
	suites.Prove(t, "it starts a process for each defect")
	for _, d := range allDefects() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			group, _, _ := strings.Cut(d.seen, "/")
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBrokenLedger$/^"+group+"$", "-test.short", "-test.timeout=2m") //nolint:gosec // It is this very binary.
			cmd.Env = append(os.Environ(), breakEnv+"="+d.name)
			out, err := cmd.CombinedOutput()
			if want := "--- FAIL: TestBrokenLedger/" + d.seen; err == nil || !strings.Contains(string(out), want) {
				t.Errorf("the suite on %s: %v, want %q in\n%.4000s", d.name, err, want, out)
			}
		})
	}
}

// TestBrokenLedger is what TestTheSuiteNoticesEveryDefect runs in a process of
// its own.
func TestBrokenLedger(t *testing.T) {
	name := os.Getenv(breakEnv)
	if name == "" {
		t.Skip("runs as a child of TestTheSuiteNoticesEveryDefect")
	}
	all := allDefects()
	i := slices.IndexFunc(all, func(d defect) bool { return d.name == name })
	storetest.Run(t, func(*testing.T) storetest.Harness {
		m, unread := memory.New(memory.Options{}), &unfit{}
		constrain := func(name string) func(testing.TB) {
			return func(testing.TB) {
				r := storetest.Grant("planted", 1)
				r.Metadata = name
				m.Put(r)
			}
		}
		h := storetest.Harness{
			PlantUnique: constrain("planted_unique"), PlantTrigger: constrain("planted_trigger"),
			FreeStamp: true,
			Open: func(testing.TB) store.Ledger {
				b := intact(m.Handle(), unread)
				all[i].in(b)
				return b
			},
			OpenElsewhere: func(testing.TB) (store.Ledger, error) {
				b := intact(m.Handle(), unread)
				b.elsewhere = true
				all[i].in(b)
				return b, nil
			},
			OpenReading: func(testing.TB) store.Ledger {
				b := reader(m, unread)
				all[i].in(b)
				return b
			},
			PlantPresence: unread.plant(m),
			Plant: func(_ testing.TB, workerType string, seq int64, fields map[string]any) {
				m.Put(storetest.Decode(workerType, seq, fields))
			},
		}
		spoil(name, &h)
		return h
	})
}

func TestMain(m *testing.M) {
	storetest.PlayContender(openAlone)
	if os.Getenv(breakEnv) == "" {
		parallel.Waiting() // for processes with broken stores, which wait for much
	}
	os.Exit(m.Run())
}
